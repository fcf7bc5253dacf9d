package console

import "time"

// Show returns a subject as a page shows it.
func Show(subject string) string { return show(subject) }

// EndStreamsAfter changes how long streams of events last.
func (h *Handler) EndStreamsAfter(life time.Duration) { h.streamLife = life }
