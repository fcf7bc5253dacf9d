//go:build !linux

package filewatch

// explain returns the error, because only Linux has inotify.
func explain(err error) error { return err }
