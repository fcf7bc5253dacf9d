// Package apiclients tests core/outgoing below libraries that many services call others with. It is a
// module of its own because it needs those libraries.
package apiclients
