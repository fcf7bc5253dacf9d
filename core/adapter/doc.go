// Package adapter is for authors of adapters, which attach the rules of core to the routes of a
// framework. It has what an adapter implements and reads; users of an adapter need none of it.
//
//   - [View] is the view of a call that an adapter gives to the core. [LooseView] and [RoutedView]
//     have one more method, for some frameworks. [HeaderWriter] is the headers of the reply.
//     [PeerOf] and [PeerAddr] read addresses.
//   - core.Guard.Check decides for a middleware, and core.Check.Allow inside a handler. Both take a
//     View and return a core.Answer.
//   - A core.Answer holds the core.Refusal to send (its SetHeader, SetPushback), or runs the handler
//     (Run), unless the outcome does not matter (Final). Its Watch returns a [Response], which
//     follows replies of frameworks on net/http.
//
// The example of package adaptertest is an adapter for a made-up framework. adaptertest.Run tests
// that an adapter does everything that it must do.
//
// This package imports nothing of core, so that what an adapter implements can be read by itself.
package adapter
