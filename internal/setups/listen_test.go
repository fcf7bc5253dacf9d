package setups_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// authority is a CA that has signed the certificate of a server.
type authority struct {
	roots         *x509.CertPool
	pair          tls.Certificate
	ca, cert, key string // files
}

// start starts a server with a TLS port and returns that port's address. The server may demand a
// certificate of its clients. If it was built without TLS, it gets a front that has TLS.
func (a *authority) start(t *testing.T, demands string) (addr string) {
	t.Helper()
	server := redistest.Start(t)
	client := server.Client(t)
	set := func(name, value string) error { return client.ConfigSet(background, name, value).Err() }
	err := errors.Join(set("tls-cert-file", a.cert), set("tls-key-file", a.key), set("tls-ca-cert-file", a.ca), set("tls-auth-clients", demands))
	for try := 0; err == nil && try < 5; try++ { // somebody else may take the port first
		free := listenOnce(t)
		_, port, _ := net.SplitHostPort(free)
		if set("tls-port", port) != nil {
			continue
		}
		if speaksTLS(free) { // Redis 7.4 takes the setting without TLS, too
			return free
		}
		break
	}
	plain := redistest.Start(t) // the other server may have a TLS port that does not work
	config := &tls.Config{Certificates: []tls.Certificate{a.pair}}
	if demands == "yes" {
		config.ClientAuth = tls.RequireAnyClientCert
	}
	return bounded.Listen(t, func(l *bounded.Listener, conn net.Conn) { l.Forward(conn, tls.Server(conn, config), plain.Addr()) }).Addr()
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	dir := t.TempDir()
	a := &authority{roots: x509.NewCertPool(), ca: filepath.Join(dir, "ca"), cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key")}
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
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	der, err := x509.MarshalECPrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	caPEM, certPEM, keyPEM := signed(ca, caKey), signed(server, serverKey), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	a.roots.AppendCertsFromPEM(caPEM)
	for file, content := range map[string][]byte{a.ca: caPEM, a.cert: certPEM, a.key: keyPEM} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if a.pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
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

// speaksTLS reports whether the server at an address completes a handshake.
func speaksTLS(addr string) bool {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Second}, Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.Dial("tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// listenOnce returns an address on which nobody listened a moment ago.
func listenOnce(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// listen returns the address of a listener. It answers each connection with a function, or only
// accepts it.
func listen(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	return bounded.Listen(t, func(_ *bounded.Listener, conn net.Conn) {
		if answer == nil {
			_, _ = io.Copy(io.Discard, conn)
			return
		}
		answer(conn)
	}).Addr()
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
