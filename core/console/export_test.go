package console

import "time"

// EndStreamsAfter changes how long streams of events last.
func (h *Handler) EndStreamsAfter(life time.Duration) { h.streamLife = life }
