package core_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// lender lends strings as a framework does that uses one buffer for all requests of a connection.
type lender struct {
	room []byte
	used int
}

// lend returns the same text in the buffer.
func (l *lender) lend(text string) string {
	from := l.used
	l.used += copy(l.room[from:], text)
	return unsafe.String(&l.room[from], len(text))
}

// takeBack overwrites all that was lent.
func (l *lender) takeBack() {
	for i := range l.room {
		l.room[i] = '~'
	}
	l.used = 0
}

// kept returns the paths to every string and slice that is reachable from the arguments and lies in
// the lender's buffer. It sees everything except the variables of closures.
func (l *lender) kept(what ...any) []string {
	w := walk{lender: l, seen: make(map[place]bool), locked: make(map[mutex]bool)}
	// The first use of a local time fills time.Local, for example when go-redis logs.
	w.seen[place{unsafe.Pointer(time.Local), reflect.TypeOf(time.Local)}] = true
	for _, of := range what {
		w.visit(fmt.Sprintf("%T", of), reflect.ValueOf(of))
	}
	return w.found
}

func newLender() *lender { return &lender{room: make([]byte, 4096)} }

type walk struct {
	lender *lender
	seen   map[place]bool
	locked map[mutex]bool
	found  []string
}

func (w *walk) visit(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		w.look(path, unsafe.Pointer(unsafe.StringData(v.String())))
	case reflect.Slice:
		w.look(path, v.UnsafePointer())
		w.each(path, v)
	case reflect.Array:
		w.each(path, v)
	case reflect.Interface:
		w.visit(path, v.Elem())
	case reflect.Pointer:
		if at := (place{v.UnsafePointer(), v.Type()}); at.at != nil && !w.seen[at] {
			w.seen[at] = true
			w.visit(path, v.Elem())
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			w.visit(path+"[key]", entry.Key())
			w.visit(path+"[value]", entry.Value())
		}
	case reflect.Struct:
		w.fields(path, v)
	}
}

func (w *walk) look(path string, at unsafe.Pointer) {
	from := uintptr(unsafe.Pointer(&w.lender.room[0]))
	if from <= uintptr(at) && uintptr(at) < from+uintptr(len(w.lender.room)) {
		w.found = append(w.found, path)
	}
}

func (w *walk) each(path string, v reflect.Value) {
	if kind := v.Type().Elem().Kind(); reflect.Bool <= kind && kind <= reflect.Complex128 {
		return
	}
	for i := range v.Len() {
		w.visit(path+"[]", v.Index(i))
	}
}

func (w *walk) fields(path string, v reflect.Value) {
	of := v.Type()
	switch {
	case strings.Contains(of.PkgPath(), "redis/go-redis"), of.PkgPath() == "log/slog":
		return
	case of == reflect.TypeFor[sync.RWMutex](): // it has a mutex, which it holds while it is locked
		return
	case of.PkgPath() == "sync/atomic" && strings.HasPrefix(of.Name(), "Pointer["):
		if at := atomic.LoadPointer((*unsafe.Pointer)(v.FieldByName("v").Addr().UnsafePointer())); at != nil {
			w.visit(path, reflect.NewAt(of.Field(0).Type.Elem().Elem(), at))
		}
		return
	}
	defer w.lock(v)()
	for i := range v.NumField() {
		w.visit(path+"."+of.Field(i).Name, v.Field(i))
	}
}

// mutex is a sync.Mutex or a sync.RWMutex.
type mutex interface {
	sync.Locker
	TryLock() bool
}

// lock locks the mutexes of a struct, because work in the background may write to the fields that
// they guard. It takes all of them or none: the work may take them in another order.
func (w *walk) lock(v reflect.Value) (unlock func()) {
	mutexes := w.mutexesOf(v)
	for held := 0; held < len(mutexes); {
		if mutexes[held].TryLock() {
			held++
			continue
		}
		for ; held > 0; held-- {
			mutexes[held-1].Unlock()
		}
		runtime.Gosched()
	}
	return func() {
		for _, mu := range mutexes {
			mu.Unlock()
			delete(w.locked, mu)
		}
	}
}

// mutexesOf returns the mutexes of a struct, and of the structs in it, that are not locked yet.
func (w *walk) mutexesOf(v reflect.Value) (mutexes []mutex) {
	for i := range v.NumField() {
		var mu mutex
		switch of := v.Type().Field(i).Type; {
		case !v.CanAddr():
			continue
		case of == reflect.TypeFor[sync.Mutex]():
			mu = (*sync.Mutex)(v.Field(i).Addr().UnsafePointer())
		case of == reflect.TypeFor[sync.RWMutex]():
			mu = (*sync.RWMutex)(v.Field(i).Addr().UnsafePointer())
		case of.Kind() == reflect.Struct:
			mutexes = append(mutexes, w.mutexesOf(v.Field(i))...)
			continue
		default:
			continue
		}
		if !w.locked[mu] {
			w.locked[mu] = true
			mutexes = append(mutexes, mu)
		}
	}
	return mutexes
}

type place struct {
	at unsafe.Pointer
	of reflect.Type
}
