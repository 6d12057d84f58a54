package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
)

// maxKeyFile bounds an identity file in bytes. An Ed25519 key takes 68.
const maxKeyFile = 4096

// identity is the private key of the file at path, made if it is absent; for
// an empty path a key that no file holds.
//
// The file is libp2p's own protobuf of a private key, in the clear: what
// `ipfs key export --format=libp2p-protobuf-cleartext` writes.
func identity(path string) (crypto.PrivKey, error) {
	if path == "" {
		return newKey()
	}
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if key, err = newKey(); err != nil {
		return nil, err
	}
	switch err := writeKey(path, key); {
	case errors.Is(err, fs.ErrExist): // another process was faster: its key is the one
		return readKey(path)
	case err != nil:
		return nil, fmt.Errorf("node: cannot make identity file %s: %w", path, err)
	}
	return key, nil
}

func newKey() (crypto.PrivKey, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("node: cannot make a key: %w", err)
	}
	return key, nil
}

// readKey refuses a file that others can read: whoever has the key is the peer.
func readKey(path string) (crypto.PrivKey, error) {
	data, err := privateFile("identity", path, maxKeyFile)
	if err != nil {
		return nil, err
	}
	key, err := crypto.UnmarshalPrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("node: identity file %s is not a libp2p private key: %w", path, err)
	}
	if key.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("node: identity file %s holds a key of type %s: want Ed25519", path, key.Type())
	}
	return key, nil
}

// writeKey makes the file in one step, whole or not at all, and never replaces
// one: a link fails where a rename would overwrite.
func writeKey(path string, key crypto.PrivKey) (err error) {
	data, err := crypto.MarshalPrivateKey(key)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".identity-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
