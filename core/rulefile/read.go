package rulefile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// The bounds on what is loaded together. They limit the time that a hostile or mistaken file can
// cost.
const (
	maxFileBytes = 1 << 20
	maxFiles     = 100
	maxAllBytes  = 4 << 20
	maxRules     = 1000
)

// source is a file that was read, or a document.
type source struct {
	name   string
	data   []byte
	isJSON bool
}

// readAll returns the files that paths name, in order: a folder stands for the rules files
// directly in it, sorted by name.
func readAll(paths []string, wrong *problems) (sources []source) {
	total := 0
	for _, name := range expand(paths, wrong) {
		wrong.files = append(wrong.files, name)
		data, err := readFile(name)
		switch total += len(data); {
		case err != nil:
			wrong.add(&Error{Place: Place{File: name}, Err: err, unread: true})
		case total > maxAllBytes:
			wrong.add(&Error{Place: Place{File: name}, Err: fmt.Errorf("with this file there are more than %d bytes of rules", maxAllBytes)})
		default:
			sources = append(sources, fileSource(name, data))
		}
	}
	return sources
}

// fileSource returns a file as the parser reads it.
func fileSource(name string, data []byte) source {
	return source{name, data, strings.EqualFold(filepath.Ext(name), ".json")}
}

// expand replaces folders by the files in them.
func expand(paths []string, wrong *problems) (files []string) {
	for _, path := range paths {
		inside, err := filesOf(path)
		if err != nil {
			wrong.files = append(wrong.files, path)
			wrong.add(&Error{Place: Place{File: path}, Err: err, unread: true})
		}
		files = append(files, inside...)
	}
	if len(files) > maxFiles {
		err := fmt.Errorf("there are %d files, want at most %d", len(files), maxFiles)
		wrong.add(&Error{Place: Place{File: files[maxFiles]}, Err: err})
		return nil
	}
	return files
}

// filesOf returns the path itself, or the rules files in it if it is a folder.
func filesOf(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cause(err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, cause(err)
	}
	for _, entry := range entries {
		if isRules(entry.Name()) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the folder has no file *.yaml, *.yml or *.json")
	}
	return files, nil
}

// isRules reports whether a file of a folder is loaded. Hidden files are not: a Kubernetes
// ConfigMap and many editors keep their own there.
func isRules(name string) bool {
	return !strings.HasPrefix(name, ".") &&
		slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// cause returns an error of the operating system without the path, which messages begin with.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("cannot be read: %w", at.Err)
	}
	return err
}

// readFile reads a regular file. Anything else could block forever, or never end.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, cause(err)
	}
	if err := checkFile(info); err != nil {
		return nil, err // opening a device can have side effects
	}
	// A FIFO may have taken its place by now.
	file, err := os.OpenFile(name, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, cause(err)
	}
	defer file.Close()
	return readAndCheck(file)
}

// readAndCheck reads an open file.
func readAndCheck(file *os.File) ([]byte, error) {
	before, err := file.Stat()
	if err != nil {
		return nil, cause(err)
	}
	if err := checkFile(before); err != nil {
		return nil, err
	}
	if before.Size() == 0 {
		return nil, nil // a kernel file, whose size is 0 too, could block
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, cause(err)
	}
	after, err := file.Stat()
	switch {
	case err != nil:
		return nil, cause(err)
	case int64(len(data)) != before.Size(), after.Size() != before.Size(), !after.ModTime().Equal(before.ModTime()):
		return nil, errors.New("changed while it was read")
	}
	return data, nil
}

// checkFile returns an error unless it is a regular file that is not too large.
func checkFile(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("is a folder, not a file")
	case !info.Mode().IsRegular():
		return fmt.Errorf("is not a regular file (%v)", info.Mode().Type())
	case info.Size() > maxFileBytes:
		return fmt.Errorf("has %d bytes, want at most %d", info.Size(), maxFileBytes)
	}
	return nil
}

// checkText returns what is wrong with the bytes of a file, and the offset, which is 0 for the
// whole file.
func checkText(data []byte) (offset int, why string) {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return 0, "is empty: it must have rules"
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")), bytes.IndexByte(data, 0) >= 0:
		return 0, "is not UTF-8 (it looks like UTF-16, or binary): save it as UTF-8"
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return 0, "begins with a byte order mark: save it as UTF-8 without BOM"
	}
	if i := bytes.IndexByte(data, '\r'); i >= 0 {
		return i, "has a carriage return: save the file with the line ends of Unix (LF, not CRLF)"
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i, "is not UTF-8 here: save the file as UTF-8"
		}
		i += size
	}
	return 0, ""
}

// placeOf returns the place of a byte.
func placeOf(file string, data []byte, offset int) Place {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Place{file, bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1}
}

// reading holds the contents of files when they were read.
type reading struct {
	sources []source
	wrong   problems // problems with reading them
}

func readNow(paths []string) *reading {
	r := new(reading)
	r.sources = readAll(paths, &r.wrong)
	return r
}

// replay returns what was read, like readAll.
func (r *reading) replay(wrong *problems) []source {
	*wrong = r.wrong
	wrong.found = slices.Clone(r.wrong.found) // the loader adds to them
	return r.sources
}

// digest returns a digest of the files' names and contents, and of the errors in reading them.
func (r *reading) digest() string {
	all := sha256.New()
	for _, from := range r.sources {
		fmt.Fprintf(all, "%q %d ", from.name, len(from.data))
		all.Write(from.data)
	}
	for _, e := range r.wrong.found {
		fmt.Fprintf(all, "%q ", e.Error())
	}
	return string(all.Sum(nil))
}
