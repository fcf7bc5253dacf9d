package harness

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
)

const slots = 16384

// StartCluster starts a cluster of this many masters, which divide the slots evenly. Its files are
// in dir, which must be empty. It returns the first master.
func StartCluster(masters int, dir string) (first *Server, err error) {
	var all []*Server
	defer func() {
		if err != nil {
			for _, s := range all {
				s.Stop()
			}
		}
	}()
	for i := range masters {
		s, err := StartServer("--dir", dir, "--cluster-config-file", strconv.Itoa(i),
			"--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	for i := range all {
		if err := join(all, i); err != nil {
			return nil, err
		}
	}
	for _, s := range all {
		if err := s.awaitCluster(); err != nil {
			return nil, err
		}
	}
	all[0].others = all[1:]
	return all[0], nil
}

// join gives a master its share of the slots and makes it meet the masters before it. Each master
// starts with a different epoch, so the masters do not have to resolve a conflict first.
func join(all []*Server, i int) error {
	ctx, client := context.Background(), all[i].Client
	err := errors.Join(
		client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(),
		client.ClusterAddSlotsRange(ctx, i*slots/len(all), (i+1)*slots/len(all)-1).Err())
	for _, other := range all[:i] {
		host, port, _ := net.SplitHostPort(other.Addr)
		err = errors.Join(err, client.ClusterMeet(ctx, host, port).Err())
	}
	return err
}

func (s *Server) awaitCluster() error {
	for range 200 {
		info := s.Client.ClusterInfo(context.Background()).Val()
		if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:16384") {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the cluster is not complete")
}
