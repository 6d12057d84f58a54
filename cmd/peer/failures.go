package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"peermesh/mesh"
	"peermesh/node"
)

// A remedy is what to do about a kind of failure.
type remedy struct {
	is   error  // what the error must be; nil: anything
	says string // what it must say; empty: anything
	text string
}

// remedies are looked at in this order; the first that fits counts.
var remedies = []remedy{
	{mesh.ErrName, "", "give every peer the same --mesh"},
	{mesh.ErrSize, "", "give every peer the same --world"},
	{mesh.ErrVersion, "", "run the same release everywhere (peer version says which)"},
	{mesh.ErrTerms, "", "give every peer the same flags and data; the first peer printed the command for the others"},
	{mesh.ErrFull, "", "start every peer with a larger --world, or this one with the --mesh of another run"},
	{mesh.ErrTwin, "", "give each process an --identity of its own, or none"},
	{node.ErrSecret, "", "give every peer the same --secret file"},
	{node.ErrNotAllowed, "", "add this peer's ID to the --allow file there and start it with the --identity of that ID (peer id --identity FILE prints it)"},
	{mesh.ErrNoWorld, "peer id mismatch", "another peer listens there: copy the whole address that the first peer prints now, /p2p/ID included; with --identity FILE it stays the same"},
	{mesh.ErrNoWorld, "bootstrap /ip4/127.", remedyLoopback},
	{mesh.ErrNoWorld, "bootstrap /ip6/::1/", remedyLoopback},
	{mesh.ErrNoWorld, "bootstrap /", "see that the first peer runs, that this is its address, and that no firewall is in between: peer doctor --bootstrap ADDR looks into it"},
	{mesh.ErrNoWorld, "has announced but", "let each peer be dialled by the others: --listen on an address that they reach, a port that the firewall lets in, or --nat"},
	{mesh.ErrNoWorld, "", "start those that are missing, with the command that the first peer printed, or give all more time with --wait"},
	{syscall.EMFILE, "", remedyFiles},
	{nil, "too many open files", remedyFiles},
	{syscall.EADDRINUSE, "", remedyPort},
	{nil, "address in use", remedyPort},
	{syscall.ENOSPC, "", "make room there, or name another folder"},
}

const (
	remedyLoopback = "a loopback address is this machine itself: if the first peer is on another one, take the address that it prints for other machines; if it is here, see that it runs"
	remedyFiles    = "let this process open more files: ulimit -n 4096"
	remedyPort     = "another process listens there: end it (ss -lntup shows which it is), or take another port with --listen, where 0 is any"
)

// remedied is an error that says what to do about it, if that is known.
func remedied(err error) error {
	for _, r := range remedies {
		if err != nil && (r.is == nil || errors.Is(err, r.is)) && strings.Contains(err.Error(), r.says) && !strings.Contains(err.Error(), r.text) {
			return fmt.Errorf("%w: %s", err, r.text)
		}
	}
	return err
}
