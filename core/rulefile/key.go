package rulefile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// readKey sets the rule's key to a key of the file, or to a list of them together.
func (r *ruleReader) readKey(_ *rulefield.Field, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		r.rule.Key = r.keyOf(n)
		return
	}
	var keys []core.KeyFunc
	for _, item := range n.Content {
		keys = append(keys, r.keyOf(item))
	}
	if r.rule.Key = keys[0]; len(keys) > 1 {
		r.rule.Key = core.Join(keys...)
	}
}

// keyOf returns the key that a text stands for, or core.ByIP after adding what is wrong.
func (r *ruleReader) keyOf(n *yaml.Node) core.KeyFunc {
	key, why := r.functions.key(n.Value)
	r.keys = append(r.keys, n.Value)
	if plainKeys[n.Value] == nil && !isParametric(n.Value) {
		r.uses = append(r.uses, FunctionUse{r.name, "key", n.Value})
	}
	if why != "" && r.anyFunction && n.Value != "" && !isParametric(n.Value) {
		return madeUp(reflect.TypeFor[core.KeyFunc]()).Interface().(core.KeyFunc)
	}
	if why != "" {
		r.fail(n, valued("key", n), why)
		r.bad[n] = true
		return core.ByIP
	}
	return key
}

// isParametric reports whether a text is a key that needs no function, even if it has a mistake.
func isParametric(text string) bool {
	word, _, parametric := strings.Cut(text, ":")
	return parametric && (parametricKeys[word] != nil || closest(word, slices.Sorted(maps.Keys(parametricKeys))) != "")
}

func (f *Functions) key(text string) (_ core.KeyFunc, why string) {
	if key := plainKeys[text]; key != nil {
		return key, ""
	}
	if key := f.Keys[text]; key != nil {
		return key, ""
	}
	word, name, parametric := strings.Cut(text, ":")
	switch make := parametricKeys[word]; {
	case !parametric || make == nil:
		return nil, f.unknownKey(text)
	case name == "" || name != strings.TrimSpace(name):
		return nil, fmt.Sprintf("must have a name after the colon, as in %s:NAME", word)
	case word == "header" && !isToken(name):
		return nil, "must name a header, which has letters, digits and dashes"
	default:
		return make(name), ""
	}
}

// unknownKey returns a message that says what a key can be.
func (f *Functions) unknownKey(text string) string {
	words := slices.Sorted(maps.Keys(parametricKeys))
	if word, name, ok := strings.Cut(text, ":"); ok && closest(word, words) != "" {
		return fmt.Sprintf("is not a key (did you mean %q?)", closest(word, words)+":"+name)
	}
	known := slices.Concat(slices.Sorted(maps.Keys(plainKeys)), slices.Sorted(maps.Keys(f.Keys)))
	return fmt.Sprintf("is not a key%s: must be one of %s, header:NAME, param:NAME, query:NAME, value:NAME",
		didYouMean(text, known), list(known))
}

// isToken reports whether a text can be the name of a header (RFC 9110, section 5.1).
func isToken(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		alphanumeric := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
