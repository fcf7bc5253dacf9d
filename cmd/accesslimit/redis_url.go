package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// errURL is the error of a URL that cannot be read. It does not show the URL, which has a password.
var errURL = errors.New("the URL of Redis cannot be read: write redis://USER:PASSWORD@HOST:PORT/DB, with %-escapes for signs such as / and # in a password")

// newClient returns a client of the Redis with this URL. Beyond the forms of go-redis, redis-cluster://
// and redis-sentinel:// (with master_name) say what kind it is, rediss... that TLS is used, and ca, cert
// and key name files for it. It does not connect.
func newClient(text string, timeout time.Duration) (redis.UniversalClient, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Fragment != "" || u.User == nil && strings.Contains(text, "@") { // the password would be taken for something else
		return nil, errURL
	}
	scheme, kind, _ := strings.Cut(u.Scheme, "-")
	u.Scheme = scheme
	files, err := takeFiles(u)
	if err != nil {
		return nil, err
	}
	open, ok := map[string]func(string, time.Duration) (redis.UniversalClient, *tls.Config, error){
		"": newSingle, "cluster": newCluster, "sentinel": newFailover,
	}[kind]
	if !ok {
		return nil, fmt.Errorf("the URL of Redis begins with %s-%s://: write redis://, redis-cluster:// or redis-sentinel://, and rediss for TLS", scheme, kind)
	}
	client, config, err := open(u.String(), timeout)
	if err != nil {
		return nil, err
	}
	return client, files.into(config)
}

func newSingle(url string, timeout time.Duration) (redis.UniversalClient, *tls.Config, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, err
	}
	o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled, o.DialerRetries = timeout, timeout, true, 1
	return redis.NewClient(o), o.TLSConfig, nil
}

func newCluster(url string, timeout time.Duration) (redis.UniversalClient, *tls.Config, error) {
	o, err := redis.ParseClusterURL(url)
	if err != nil {
		return nil, nil, err
	}
	o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled, o.DialerRetries = timeout, timeout, true, 1
	return redis.NewClusterClient(o), o.TLSConfig, nil
}

func newFailover(url string, timeout time.Duration) (redis.UniversalClient, *tls.Config, error) {
	o, err := redis.ParseFailoverURL(url)
	if err != nil {
		return nil, nil, err
	}
	if o.MasterName == "" {
		return nil, nil, errors.New("the URL of Redis names no master for the Sentinels: add ?master_name=NAME")
	}
	o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled, o.DialerRetries = timeout, timeout, true, 1
	return redis.NewFailoverClient(o), o.TLSConfig, nil
}

// tlsFiles are the files that a URL names for TLS.
type tlsFiles struct{ ca, cert, key string }

// takeFiles removes the names of files from a URL, which go-redis does not know.
func takeFiles(u *url.URL) (f tlsFiles, err error) {
	query := u.Query()
	f = tlsFiles{query.Get("ca"), query.Get("cert"), query.Get("key")}
	for _, name := range []string{"ca", "cert", "key"} {
		query.Del(name)
	}
	u.RawQuery = query.Encode()
	if f != (tlsFiles{}) && u.Scheme != "rediss" {
		return f, errors.New("the URL of Redis names files for TLS: begin it with rediss")
	}
	return f, nil
}

// into sets the certificates of a configuration.
func (f tlsFiles) into(config *tls.Config) error {
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s has no certificate in PEM", f.ca)
		}
	}
	if f.cert == "" && f.key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	config.Certificates = []tls.Certificate{pair}
	return err
}
