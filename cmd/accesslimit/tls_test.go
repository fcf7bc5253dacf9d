package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// TestTLS runs the script of a Redis that is reached by TLS, and demands a certificate.
func TestTLS(t *testing.T) {
	runScripts(t, "testdata/tls", func(env *testscript.Env) error {
		pair, err := writeCertificate(env.WorkDir)
		if err != nil {
			return err
		}
		config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}
		server := redistest.Start(t)
		proxy := bounded.Listen(t, func(l *bounded.Listener, conn net.Conn) { l.Forward(conn, tls.Server(conn, config), server.Addr()) })
		env.Setenv("ADDR", proxy.Addr())
		env.Setenv("PLAIN", server.Addr())
		env.Setenv("ACCESSLIMIT_TIMEOUT", "1m") // for a busy machine
		return nil
	})
}

// writeCertificate makes a certificate of 127.0.0.1, which is its own CA, and writes it and its key into
// a folder.
func writeCertificate(dir string) (pair tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return pair, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for name, data := range map[string][]byte{"ca.pem": certPEM, "key.pem": keyPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return pair, err
		}
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}
