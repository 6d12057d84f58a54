//go:build linux && (amd64 || arm64)

package shm

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/pnet"
	"golang.org/x/sys/unix"
)

const (
	// magic opens a hello; another shape of the memory is another magic.
	magic = "peermesh/shm/1\n"
	// proofDomain keeps a signature from standing for anything else.
	proofDomain = "peermesh shm proof 1\n"
	nonceSize   = 32
	// maxMessage bounds a message of the handshake in bytes: the longest is an RSA
	// key of 8192 bits, or its signature.
	maxMessage = 2048
	// ready is the byte that says that the memory has been mapped.
	ready = 'r'
)

// An identity is what a side proves.
type identity struct {
	key    crypto.PrivKey
	secret pnet.PSK
}

// errHandshake is the error of a peer that does not do as SPEC.md says.
var errHandshake = errors.New("shm: handshake")

// writeMessage frames one message: its length in two bytes, then it.
func writeMessage(w io.Writer, p []byte) error {
	if len(p) > maxMessage {
		return fmt.Errorf("%w: message of %d bytes", errHandshake, len(p))
	}
	_, err := w.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(p))), p...))
	return err
}

// readMessage reads no more than the message: file descriptors that come later
// would be lost.
func readMessage(r io.Reader) ([]byte, error) {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint16(n[:])
	if size > maxMessage {
		return nil, fmt.Errorf("%w: message of %d bytes", errHandshake, size)
	}
	p := make([]byte, size)
	_, err := io.ReadFull(r, p)
	return p, err
}

// newHello is a nonce, which is the challenge to the other side, and a public key.
func newHello(key crypto.PubKey) ([]byte, error) {
	k, err := crypto.MarshalPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return append(append([]byte(magic), nonce[:]...), k...), nil
}

// decodeHello gives the key of a hello.
func decodeHello(p []byte) (crypto.PubKey, error) {
	rest, ok := strings.CutPrefix(string(p), magic)
	if !ok || len(rest) < nonceSize {
		return nil, fmt.Errorf("%w: not a hello of this version", errHandshake)
	}
	key, err := crypto.UnmarshalPublicKey([]byte(rest[nonceSize:]))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHandshake, err)
	}
	return key, nil
}

// statement is what a side signs: that it takes its part in this very exchange, on
// the socket of that name.
func statement(side int, name string, hellos [2][]byte) []byte {
	p := append([]byte(proofDomain), byte(side))
	for _, part := range [][]byte{[]byte(name), hellos[dialler], hellos[listener]} {
		p = binary.LittleEndian.AppendUint16(p, uint16(len(part)))
		p = append(p, part...)
	}
	return p
}

// prove is the proof of a statement: a mark that only the private network's
// members can make, and the signature.
func (i identity) prove(statement []byte) ([]byte, error) {
	sig, err := i.key.Sign(statement)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	return append(i.mark(statement), sig...), nil
}

func (i identity) mark(statement []byte) []byte {
	m := hmac.New(sha256.New, i.secret)
	m.Write(statement) // never fails
	return m.Sum(nil)
}

func (i identity) verify(key crypto.PubKey, statement, proof []byte) error {
	if len(proof) < sha256.Size {
		return fmt.Errorf("%w: short proof", errHandshake)
	}
	mark, sig := proof[:sha256.Size], proof[sha256.Size:]
	if !hmac.Equal(mark, i.mark(statement)) {
		return fmt.Errorf("%w: the other side is of another private network", errHandshake)
	}
	switch ok, err := key.Verify(statement, sig); {
	case err != nil:
		return fmt.Errorf("%w: wrong signature: %w", errHandshake, err)
	case !ok:
		return fmt.Errorf("%w: wrong signature", errHandshake)
	}
	return nil
}

// introduce runs the first part of the handshake: both say who they are and prove
// it, the dialler first. name is that of the socket.
func (i identity) introduce(c io.ReadWriter, side int, name string) (crypto.PubKey, peer.ID, error) {
	var hellos [2][]byte
	var err error
	if hellos[side], err = newHello(i.key.GetPublic()); err != nil {
		return nil, "", err
	}
	if err := writeMessage(c, hellos[side]); err != nil {
		return nil, "", err
	}
	if hellos[1-side], err = readMessage(c); err != nil {
		return nil, "", err
	}
	key, err := decodeHello(hellos[1-side])
	if err != nil {
		return nil, "", err
	}
	for turn := range 2 {
		s := statement(turn, name, hellos)
		if turn == side {
			proof, err := i.prove(s)
			if err == nil {
				err = writeMessage(c, proof)
			}
			if err != nil {
				return nil, "", err
			}
			continue
		}
		proof, err := readMessage(c)
		if err == nil {
			err = i.verify(key, s, proof)
		}
		if err != nil {
			return nil, "", err
		}
	}
	id, err := peer.IDFromPublicKey(key)
	return key, id, err
}

// sameUser makes sure that the process at the other end is of our own user.
func sameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var who *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		who, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, asked); err != nil {
		return fmt.Errorf("shm: asking whose the other end is: %w", err)
	}
	if int(who.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: the other end is of user %d", errHandshake, who.Uid)
	}
	return nil
}

// giveMemory makes the memory, sends it, and returns when the other side has it.
func giveMemory(c *net.UnixConn) (*region, error) {
	fd, err := newFile()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // the mapping lives on
	mem, err := mapRegion(fd)
	if err != nil {
		return nil, err
	}
	var answer [1]byte
	if _, _, err = c.WriteMsgUnix([]byte{ready}, unix.UnixRights(fd), nil); err == nil {
		_, err = io.ReadFull(c, answer[:])
	}
	if err == nil && answer[0] != ready {
		err = fmt.Errorf("%w: answer %#x", errHandshake, answer)
	}
	if err != nil {
		mem.release()
		return nil, err
	}
	return mem, nil
}

// takeMemory receives memory and maps it, if it is as giveMemory makes it.
func takeMemory(c *net.UnixConn) (*region, error) {
	var p [1]byte
	oob := make([]byte, unix.CmsgSpace(4)) // room for one descriptor; the kernel closes others
	n, k, flags, _, err := c.ReadMsgUnix(p[:], oob)
	if err != nil {
		return nil, err
	}
	fds, err := descriptors(oob[:k])
	for _, fd := range fds {
		defer unix.Close(fd)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: where the memory should come: %w", errHandshake, err)
	case n != 1 || p[0] != ready || len(fds) != 1 || flags&unix.MSG_CTRUNC != 0:
		return nil, fmt.Errorf("%w: %d bytes and %d descriptors where the memory should come", errHandshake, n, len(fds))
	}
	if err := checkFile(fds[0]); err != nil {
		return nil, err
	}
	mem, err := mapRegion(fds[0])
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(p[:]); err != nil {
		mem.release()
		return nil, err
	}
	return mem, nil
}

// descriptors are those in a control message.
func descriptors(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		some, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return fds, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}
