// Package dht finds the peers of a mesh of which no address is known, by the Kademlia
// DHT of libp2p: whoever has joined says so under a key that is made of the mesh's name,
// and asks for others who have.
//
//	f, err := dht.New(dht.Config{Peers: []string{"/ip4/192.0.2.7/tcp/4001/p2p/12D3KooW…"}})
//	m, err := mesh.Join(ctx, n, mesh.Config{Name: "run-42", World: 4, Finders: []rendezvous.Finder{f}})
//
// A program that imports this package, if only for that, also knows the bootstrap form
// dht, and mesh.FromEnv by it PEERMESH_BOOTSTRAP=dht with PEERMESH_DHT for the peers:
//
//	import _ "peermesh/node/rendezvous/dht"
//	m, err := mesh.Join(ctx, n, mesh.Config{Name: "run-42", World: 4, Bootstrap: []string{"dht"}})
//
// # Whose DHT
//
// With Config.Peers it is one of Peermesh's own, of the protocol /peermesh/kad/1.0.0,
// which every peer of a mesh that is found by it also serves: any that stay up, on
// known addresses, are enough to begin with, whatever mesh they are in. Without, it is the public
// one of IPFS (/ipfs/kad/1.0.0), of which the node is a client. Everybody can read there
// that this peer is in a mesh whose name hashes to that key, and that a mesh of a name
// that can be guessed exists; give such a mesh a secret.
//
// An entry outlives its peer by up to two days. Those who are gone are dialled in vain
// and do no other harm.
//
// It is a package of its own because it adds 4 MB to a program.
package dht
