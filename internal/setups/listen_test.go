package setups_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// authority is a CA that has signed the certificate of a server.
type authority struct {
	roots *x509.CertPool
	pair  tls.Certificate
}

// start starts a server that speaks TLS, and returns its address. It may demand a certificate of its
// clients. Go speaks it, in front of Redis, because not every redis-server was built with TLS.
func (a *authority) start(t *testing.T, demands bool) (addr string) {
	t.Helper()
	plain := redistest.Start(t)
	return listen(t, func(conn net.Conn) { a.front(conn, plain.Addr(), demands) })
}

// front speaks TLS with a client, and forwards what both sides send.
func (a *authority) front(conn net.Conn, addr string, demands bool) {
	config := &tls.Config{Certificates: []tls.Certificate{a.pair}}
	if demands {
		config.ClientAuth = tls.RequireAnyClientCert
	}
	client := tls.Server(conn, config)
	server, err := net.Dial("tcp", addr)
	if err != nil || client.Handshake() != nil {
		return
	}
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, client)
	_ = server.Close()
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{roots: x509.NewCertPool()}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	caKey, serverKey := newKey(t), newKey(t)
	signed := func(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	root, err := x509.ParseCertificate(signed(ca, caKey))
	if err != nil {
		t.Fatal(err)
	}
	a.roots.AddCert(root)
	a.pair = tls.Certificate{Certificate: [][]byte{signed(server, serverKey)}, PrivateKey: serverKey}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// listen returns the address of a listener. It answers each connection with a function, or only
// accepts it.
func listen(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Wait()
	})
	conns.Go(func() {
		var all []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			all = append(all, conn)
			if answer != nil {
				conns.Go(func() {
					answer(conn)
					_ = conn.Close()
				})
			}
		}
		for _, conn := range all {
			_ = conn.Close()
		}
	})
	return listener.Addr().String()
}

func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

func closeAfterHello(conn net.Conn) { _, _ = conn.Read(make([]byte, 1000)) }

func answerAsHTTP(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1000))
	_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
}

// blackHole dials an address that never answers.
func blackHole(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
}
