package doctor

import (
	"context"
	"fmt"
)

// version looks at the version of a server.
func (e *exam) version(_ context.Context, s *server) {
	number, name := s.info["redis_version"], "Redis"
	if valkey := s.info["valkey_version"]; valkey != "" {
		number, name = valkey, "Valkey"
	}
	var major, minor, patch int
	n, _ := fmt.Sscanf(number, "%d.%d.%d", &major, &minor, &patch)
	says := fmt.Sprintf("%s %s", name, number)
	switch {
	case number == "":
		e.unseen("version", s, "the version", s.whySilent())
	case n < 2 || name == "Redis" && (major < 6 || major == 6 && minor < 2):
		e.add(Problem, "version", s, says+" is too old for the scripts of this library", "run Redis 6.2 or later, or Valkey 8.0 or later")
	case name == "Redis" && major == 6 && patch < 7:
		e.add(Note, "version", s, says+" does not apply min-replicas-to-write to scripts", "run Redis 6.2.7 or later, if you rely on that")
	default:
		e.add(OK, "version", s, says, "")
	}
}

// kind looks whether the client suits the server.
func (e *exam) kind(_ context.Context, s *server) {
	if s.info["redis_mode"] == "cluster" && !e.isCluster() {
		e.add(Problem, "client", s, "the server is part of a cluster, and the client is not one for a cluster",
			"make the client with redis.NewClusterClient; in a URL, write redis-cluster://")
	}
	if s.replica && !e.isCluster() {
		e.add(Problem, "client", s, "the server is a replica, which refuses to write", "connect to the master, as redis.NewFailoverClient does; in a URL, write redis-sentinel://")
	}
}
