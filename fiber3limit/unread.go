package fiber3limit

import (
	"reflect"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v3"
)

// unread reports whether fiber could not read the request, and will answer with an error when the
// middlewares of Use have returned. Its header may be empty or cut short, so its caller is not
// known.
//
// Only an unexported field says so, which has had two names. Reading it takes 20 ns. If a version
// of fiber or a service's own context has no such field, unread requests are counted, by what is
// left of them.
func unread(c fiber.Ctx) bool {
	if c.Matched() {
		return false
	}
	state := reflect.Indirect(reflect.ValueOf(c))
	if state.Kind() != reflect.Struct {
		return false
	}
	index := unreadField(state.Type())
	return index != nil && state.FieldByIndex(index).Bool()
}

// unreadField returns the index of the field in a type of context, or nil.
func unreadField(context reflect.Type) (index []int) {
	if known, ok := unreadFields.Load(context); ok {
		return known.([]int)
	}
	field, ok := context.FieldByNameFunc(func(name string) bool {
		return strings.HasSuffix(strings.ToLower(name), "skipnonuseroutes")
	})
	if ok && field.Type.Kind() == reflect.Bool {
		index = field.Index
	}
	unreadFields.Store(context, index)
	return index
}

// unreadFields holds the results of unreadField, one for each type of context.
var unreadFields sync.Map
