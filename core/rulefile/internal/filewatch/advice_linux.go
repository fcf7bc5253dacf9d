package filewatch

import (
	"errors"
	"fmt"
	"syscall"
)

// explain adds advice to the errors of inotify that give none.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: raise the sysctl fs.inotify.max_user_instances, or the limit of open files", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: raise the sysctl fs.inotify.max_user_watches", err)
	}
	return err
}
