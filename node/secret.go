package node

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/libp2p/go-libp2p/core/pnet"
)

const (
	// MinSecret is the least length of a secret in bytes.
	MinSecret = 16
	// maxSecret bounds a secret, and a file that holds one, in bytes.
	maxSecret = 4096

	// pskHeader is how a libp2p key file begins.
	pskHeader = "/key/swarm/psk/1.0.0/"

	// Two keys follow from a secret: one for what libp2p does with it on TCP, one
	// for the proof on every connection. Neither tells anything of the other.
	pskInfo, proofInfo = "peermesh psk 1", "peermesh proof 1"
)

// ReadSecret reads the secret of a private network, for Config.Secret. A file
// that begins like a libp2p key file (/key/swarm/psk/1.0.0/, what ipfs-swarm-key-gen
// writes) holds the 32 bytes that it encodes; any other file holds its bytes as
// they are, less white space at the end, so that an editor's newline does no harm.
//
// A good secret is random: head -c 32 /dev/urandom | base64 > secret. One shorter
// than MinSecret is refused, and so is a file that others can read.
func ReadSecret(path string) ([]byte, error) {
	data, err := privateFile("secret", path, maxSecret)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte(pskHeader)) {
		psk, err := pnet.DecodeV1PSK(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("node: secret file %s begins with %s but holds no such key: %w", path, pskHeader, err)
		}
		return psk, nil
	}
	data = bytes.TrimRight(data, " \t\r\n")
	if err := checkSecret(data); err != nil {
		return nil, fmt.Errorf("node: secret file %s: %w", path, err)
	}
	return data, nil
}

func checkSecret(secret []byte) error {
	switch n := len(secret); {
	case n < MinSecret:
		return fmt.Errorf("a secret of %d bytes can be guessed: want at least %d, random ones", n, MinSecret)
	case n > maxSecret:
		return fmt.Errorf("a secret of %d bytes: want at most %d", n, maxSecret)
	}
	return nil
}

// derive is HKDF with SHA-256 (RFC 5869), without salt.
func derive(secret []byte, info string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, info, sha256.Size)
	if err != nil {
		panic("node: HKDF: " + err.Error()) // only for keys that are too long
	}
	return key
}

// privateFile is the content of a file that is its owner's alone: whoever can
// read it is, for the network, as good as the owner.
func privateFile(kind, path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("node: cannot open %s file: %w", kind, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("node: %s file %s: %w", kind, path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("node: %s %s is not a regular file", kind, path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("node: %s file %s can be read by others (mode %04o): chmod 600 %[2]s", kind, path, mode)
	}
	if info.Size() > most {
		return nil, fmt.Errorf("node: %s file %s is none: %d bytes are too many", kind, path, info.Size())
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, fmt.Errorf("node: %s file %s: %w", kind, path, err)
	}
	return data, nil
}
