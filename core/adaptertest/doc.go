// Package adaptertest has the tests that every adapter must pass. It is for the authors of adapters.
// Package limittest is for the tests of services.
//
// An adapter shows the core an adapter.View of each call and carries out its [core.Answer]. This
// package's example is an adapter for a made-up framework, in about eighty lines. Its function
// serve is for the test: it serves an [App] with the framework and the adapter. The test calls
// [Run]:
//
//	func TestToy(t *testing.T) { adaptertest.Run(t, adaptertest.Adapter{Serve: serve}) }
//
// Run first makes one call for each part of the contract. If one fails, Run reports the method of
// the View, what it returned and what it should have returned, and ends. Then it runs about a
// hundred scenarios, in process and with a real Redis. Every wait is bounded.
//
// Besides Serve, an [Adapter] has Connect and RPC for protocols other than HTTP/1.1, Endings, and
// Cannot, which lists each [Feature] that a framework lacks, with the reason. A handler of the App
// gets a [Handling], by which it reads the call, asks the adapter's Allow and OwnLimits, and replies.
// [RunPaths] and [FuzzPaths] test other configurations of the framework's router.
package adaptertest
