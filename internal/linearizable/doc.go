// Package linearizable records the histories of concurrent calls on a Redis that fails, and checks
// with porcupine that each could have come about by the same calls one after the other. It is a
// module of its own because it needs porcupine.
package linearizable
