package filewatch

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// spots are the names in folders that determine which files some paths lead to.
type spots struct {
	names map[string]map[string]bool // the names that matter, by folder without links; nil for all names
	own   map[string]bool            // the last elements of the folders
}

// findSpots returns the spots of all paths.
func findSpots(paths []string) *spots {
	s := &spots{names: make(map[string]map[string]bool), own: make(map[string]bool)}
	for _, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil {
			s.trace(absolute)
		}
	}
	for folder := range s.names {
		s.own[filepath.Base(folder)] = true
	}
	return s
}

// maxLinks is how many links a path may lead through, as in Linux.
const maxLinks = 40

// trace walks along a path. It notes each link on the way and the end of the path. If the end is a
// folder, it notes all names in it. If something is missing, the path ends there.
func (s *spots) trace(path string) {
	root := filepath.VolumeName(path) + string(filepath.Separator)
	here, rest := root, elements(path)
	for links := 0; len(rest) > 0 && links <= maxLinks; {
		name, next := rest[0], filepath.Join(here, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			s.note(here, name)
			return
		case info.Mode().Type() == fs.ModeSymlink:
			s.note(here, name)
			links++
			target, err := os.Readlink(next)
			if err != nil {
				return
			}
			if filepath.IsAbs(target) {
				here = root
			}
			rest = append(elements(target), rest...)
			continue
		case len(rest) == 0:
			s.note(here, name)
			if info.IsDir() {
				s.names[next] = nil
			}
		}
		here = next
	}
}

// elements returns the elements of a path.
func elements(path string) []string {
	return strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool {
		return r == '/' || r == filepath.Separator
	})
}

// note adds a name in a folder.
func (s *spots) note(folder, name string) {
	names, ok := s.names[folder]
	switch {
	case !ok:
		s.names[folder] = map[string]bool{name: true}
	case names != nil:
		names[name] = true
	}
}

// equal reports whether s and t are the same spots. t may be nil.
func (s *spots) equal(t *spots) bool { return t != nil && reflect.DeepEqual(s.names, t.names) }

func (s *spots) has(folder string) bool {
	_, ok := s.names[folder]
	return ok
}

// matter reports whether an event with this name may matter. The name is that of a folder, or of
// something in it. An unknown folder matters, because it may have been followed under another name.
func (s *spots) matter(name string) bool {
	names, ok := s.names[filepath.Dir(name)]
	return !ok || names == nil || names[filepath.Base(name)] || s.own[filepath.Base(name)]
}
