package node

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
)

func TestIdentityIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peer.key")
	a, err := identity(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := identity(path)
	if err != nil || !a.Equals(b) {
		t.Errorf("a second start has another key: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	fresh, err := identity("")
	if err != nil || fresh.Equals(a) {
		t.Errorf("a fresh key is an old one: %v", err)
	}
}

// Processes that start at the same time with one file end with one key.
func TestIdentityIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peer.key")
	keys := make([]crypto.PrivKey, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = identity(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys[1:] {
		if !k.Equals(keys[0]) {
			t.Fatal("two keys from one file")
		}
	}
}

func TestIdentityRefused(t *testing.T) {
	other, _, err := crypto.GenerateECDSAKeyPair(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecdsa, err := crypto.MarshalPrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	good, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypto.MarshalPrivateKey(good)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for want, c := range map[string]struct {
		data []byte
		mode os.FileMode
	}{
		"is not a libp2p private key": {[]byte("-----BEGIN OPENSSH PRIVATE KEY-----"), 0o600},
		"is not a libp2p":             {nil, 0o600},
		"want Ed25519":                {ecdsa, 0o600},
		"are too many":                {make([]byte, maxKeyFile+1), 0o600},
		"(mode 0644): chmod 600":      {key, 0o644},
		"(mode 0640): chmod 600":      {key, 0o640},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(want, " ", "-"))
		if err := os.WriteFile(path, c.data, c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		_, err := identity(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := identity(filepath.Join(dir, "absent", "peer.key")); err == nil || !strings.Contains(err.Error(), "cannot make") {
		t.Errorf("in a folder that is not there: %v", err)
	}
}
