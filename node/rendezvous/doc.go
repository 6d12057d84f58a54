// Package rendezvous finds the first peers of a mesh by other things than a multiaddr
// with a peer ID: a shared file, a host's name, the local network.
//
//	f, err := rendezvous.Parse("file:///shared/run-42", rendezvous.Config{})
//	err = f.Find(ctx, rendezvous.Search{Node: n, Mesh: "run-42", Found: meet})
//
// A mesh does that itself with each such form among its bootstrap addresses. These are
// the forms, and what each takes on trust:
//
//	file:///path        a file that all peers can write, or a folder for it, also on NFS.
//	                    Peers enter their addresses, and remove them when they leave.
//	                    Who can write there can make others dial, no more.
//	tcp://host:port     whoever listens there. Its ID is learned when it is met first,
//	                    written down in Config.Pins, and wanted ever after, as ssh does.
//	/dns4/host/tcp/4001 the same; also /dns and /dns6. With a /p2p/ID behind it is an
//	                    ordinary multiaddr, and needs no rendezvous.
//	/dnsaddr/host       the multiaddrs in TXT records of _dnsaddr.host, which hold IDs.
//	dht                 who says so in a Kademlia DHT, by the mesh's name. Only in programs
//	                    that import package dht.
//	lan                 who says by multicast DNS (RFC 6762) that it is in this mesh.
//
// Nobody found is believed to be more than an address: the secret, the allow list and
// the mesh's own checks come after.
//
// # First, or not
//
// The peer that others are told of need not know that it is the one. It is given the
// same tcp://host:port, finds itself there (node.ErrSelf), and is done. By file and lan
// there is no first.
//
// # Files that outlive their run
//
// A run that was killed leaves its entries behind. Whoever comes next dials them, each
// once and for at most a few seconds, and takes out those where nobody answers. This is
// done without the lock, so that one dead machine does not keep the others waiting, and
// an entry goes only if it still is what was dialled. One that was taken out in error,
// as its peer was busy, is back the next time when that looks at the file.
//
// The lock is fcntl's, on FILE.lock, which stays; it goes with the process that holds it.
// The file itself is replaced in one step, so a reader sees one state or the next.
//
// # More forms
//
// A Finder of your own goes into mesh.Config.Finders. Package dht is one that is kept
// apart because of its size.
package rendezvous
