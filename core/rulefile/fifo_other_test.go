//go:build !unix

package rulefile

import "errors"

// makeFIFO fails, because only Unix has FIFOs among its files. This file must compile.
func makeFIFO(string) error { return errors.ErrUnsupported }
