package console

import "slices"

// unknownRule is a hint about a rule that is probably misspelled. It is no error, because another process
// may have other rules.
const unknownRule = "No rule of this process has this name: look for a misspelling, unless another process has the rule."

// isUnknown reports whether an act was a ban or an override under a name that no rule of this process has.
func (h *Handler) isUnknown(where location, a *action) bool {
	return (where.name == "ban" || where.name == "override") && !slices.Contains(h.attachedNames(anyRule), show(a.rule))
}

// meetsNobody returns why a ban or an override would apply to nobody, or "". It would if rules of
// this process have the name, but none of them counts such subjects. Acts that undo something are
// carried out all the same: the rule may have counted other subjects before.
func (h *Handler) meetsNobody(act act, a *action) string {
	if act.name != "ban" && act.name != "override" || !slices.Contains(h.attachedNames(anyRule), show(a.rule)) {
		return ""
	}
	return h.operator.ActHint(a.rule, a.subject)
}

// hintAfter returns a hint about an act that was carried out, or "".
func (h *Handler) hintAfter(where location, a *action) string {
	if h.isUnknown(where, a) {
		return unknownRule
	}
	return h.operator.SubjectHint(a.subject)
}

// hintIfMissing returns the hint if the rule is not one of rules.
func hintIfMissing(rules choice, rule, hint string) string {
	if slices.Contains(rules, rule) {
		return ""
	}
	return hint
}
