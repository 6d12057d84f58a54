package main

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// identities are fresh keys for the children of a launch, in rank order. Ranks
// are the order of the peer IDs, so whoever chooses the keys knows the ranks
// before there is a mesh: a child's prefix is its rank from its first line on.
type identities struct {
	dir   string
	paths []string // of the key file of each rank; only their owner can read them
	peers []string // the peer ID of each rank
}

// newIdentities makes n keys in a temporary folder, those of one of several machines,
// on each of which that is done: see sortedKeys.
func newIdentities(n, machine, machines int) (*identities, error) {
	keys, err := sortedKeys(n, machine, machines)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "peer-launch-") // mode 0700
	if err != nil {
		return nil, fmt.Errorf("a folder for the children's keys: %w", err)
	}
	ids := &identities{dir: dir}
	for rank, key := range keys {
		path := filepath.Join(dir, strconv.Itoa(rank))
		data, err := crypto.MarshalPrivateKey(key)
		var id peer.ID
		if err == nil {
			id, err = peer.IDFromPrivateKey(key)
		}
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("rank %d's key: %w", rank, err), ids.remove())
		}
		ids.paths, ids.peers = append(ids.paths, path), append(ids.peers, id.String())
	}
	return ids, nil
}

// sortedKeys are n keys in the order of their peer IDs. Each machine takes keys from a
// range of its own, so that without a word to each other all ranks of machine 0 come
// before those of machine 1, and so on; on average it has to throw the dice as often
// as there are machines, for each key.
func sortedKeys(n, machine, machines int) ([]crypto.PrivKey, error) {
	type identity struct {
		id  peer.ID
		key crypto.PrivKey
	}
	all := make([]identity, n)
	for i := 0; i < n; {
		key, public, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		raw, err := public.Raw() // which is what the IDs of such keys differ in
		if err != nil {
			return nil, fmt.Errorf("making a key: %w", err)
		}
		if int(binary.BigEndian.Uint16(raw))*machines>>16 != machine {
			continue
		}
		id, err := peer.IDFromPublicKey(public)
		if err != nil {
			return nil, fmt.Errorf("a key's peer ID: %w", err)
		}
		all[i] = identity{id, key}
		i++
	}
	slices.SortFunc(all, func(a, b identity) int { return cmp.Compare(a.id, b.id) })
	keys := make([]crypto.PrivKey, n)
	for i := range all {
		keys[i] = all[i].key
	}
	return keys, nil
}

// forget deletes a launched child's key once it has been read, and with the last
// one the folder, so that nothing is left even if the launcher is killed.
func forget(path string) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("forgetting a launched peer's key: %w", err)
	}
	// All but the last to leave find the folder in use.
	_ = os.Remove(filepath.Dir(path))
	return nil
}

// remove deletes what the children have not.
func (i *identities) remove() error { return os.RemoveAll(i.dir) }
