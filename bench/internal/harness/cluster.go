package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

const slots = 16384

// StartCluster starts a cluster of this many masters, which divide the slots evenly. Its files are
// in dir, which the caller removes.
func StartCluster(masters int, dir string) (*Server, error) {
	s := &Server{Cluster: true}
	for i := range masters {
		own := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, errors.Join(err, s.giveUp())
		}
		n, err := startNode("--dir", own, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
		if err != nil {
			return nil, errors.Join(err, s.giveUp())
		}
		s.nodes = append(s.nodes, n)
	}
	for i := range s.nodes {
		if err := s.join(i); err != nil {
			return nil, errors.Join(err, s.giveUp())
		}
	}
	for _, n := range s.nodes {
		if err := await(n.clusterIsWhole); err != nil {
			return nil, errors.Join(err, s.giveUp())
		}
	}
	return s, nil
}

func (s *Server) giveUp() error { s.Stop(); return nil }

// join gives a master its share of the slots and makes it meet the masters before it. Each master
// has an epoch of its own from the start, so the masters have no conflict to settle first.
func (s *Server) join(i int) error {
	ctx, client := context.Background(), s.nodes[i].client
	err := errors.Join(
		client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(),
		client.ClusterAddSlotsRange(ctx, i*slots/len(s.nodes), (i+1)*slots/len(s.nodes)-1).Err())
	for _, other := range s.nodes[:i] {
		host, port, _ := net.SplitHostPort(other.addr)
		err = errors.Join(err, client.ClusterMeet(ctx, host, port).Err())
	}
	return err
}

func (n *node) clusterIsWhole() error {
	info, err := n.client.ClusterInfo(context.Background()).Result()
	if err == nil && !(strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:16384")) {
		err = errors.New("the cluster is not whole: " + strings.ReplaceAll(info, "\r\n", " "))
	}
	return err
}
