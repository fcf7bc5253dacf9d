package doctor

import (
	"context"
	"fmt"
	"strings"
)

// farBehind is how many bytes a replica may be behind its master before that is a finding.
const farBehind = 1 << 20

// replication looks at the replicas of a master.
func (e *exam) replication(_ context.Context, s *server) {
	switch n := s.number("connected_slaves"); {
	case s.info["role"] == "":
		e.unseen("replicas", s, "replication", s.whySilent())
	case s.replica && s.info["master_link_status"] != "up":
		e.add(Warning, "replicas", s, "the replica has lost its master: if it takes over, the latest writes are missing", "see Redis's log, and the network between them")
	case s.replica:
		e.add(OK, "replicas", s, "a replica of "+s.info["master_host"]+":"+s.info["master_port"]+", connected", "")
	case n == 0:
		e.add(Note, "replicas", s, "there is no replica: until this server is back, OnStoreError decides", "")
	default:
		e.replicas(s, n)
	}
}

// replicas looks whether the replicas of a master keep up.
func (e *exam) replicas(s *server, n int64) {
	for i := range n {
		fields := make(map[string]string)
		for pair := range strings.SplitSeq(s.info[fmt.Sprintf("slave%d", i)], ",") {
			name, value, _ := strings.Cut(pair, "=")
			fields[name] = value
		}
		replica := server{info: fields}
		behind := s.number("master_repl_offset") - replica.number("offset")
		if fields["state"] != "online" || behind > farBehind {
			e.add(Warning, "replicas", s, fmt.Sprintf("the replica %s:%s is %s, and %d bytes behind: counters that it lacks when it takes over begin afresh",
				fields["ip"], fields["port"], fields["state"], behind), "see the replica's log, and the network between them")
			return
		}
	}
	e.add(OK, "replicas", s, fmt.Sprintf("replicas that keep up: %d", n), "")
}
