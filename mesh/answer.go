package mesh

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Codes of an answer. Below 16 they are final, and end the asking peer's
// attempt to join; from 16 on another try may go better. Never renumbered.
const (
	answerYes      = 0
	refuseVersion  = 1
	refuseName     = 2
	refuseSize     = 3
	refuseFull     = 4
	refuseIdentity = 5
	refuseTerms    = 6
	declineBusy    = 16 // has acknowledged another proposal
	declineStale   = 17 // the proposal rests on an older epoch
	declineWorld   = 18 // is in a world
	declineIdle    = 19 // nobody there waits for a world
	declineQuorum  = 20 // the members may not go on without others
	declineExpired = 21 // the announcement has expired
)

// maxText bounds the words of an answer in bytes.
const maxText = 512

// An answer is what a peer says to an announcement or a proposal: yes, or no
// and why. Either way it tells the last epoch that the peer knows of.
type answer struct {
	Code  uint8
	Epoch uint64
	Base  digest
	Text  string
}

func (a *answer) final() bool { return a.Code != answerYes && a.Code < declineBusy }

func (a *answer) append(p []byte) []byte {
	p = append(p, a.Code)
	p = binary.LittleEndian.AppendUint64(p, a.Epoch)
	p = append(p, a.Base[:]...)
	return appendBlock(p, []byte(clip(a.Text, maxText)))
}

func readAnswer(r io.Reader) (*answer, error) {
	head, err := readFull(r, 1+8+len(digest{}))
	if err != nil {
		return nil, fmt.Errorf("mesh: answer: %w", err)
	}
	s := scanner{p: head}
	a := &answer{Code: s.uint8(), Epoch: s.uint64(), Base: digest(s.bytes(len(digest{})))}
	text, err := readBlock(r, maxText)
	if err != nil {
		return nil, fmt.Errorf("mesh: answer: %w", err)
	}
	a.Text = printable(text)
	return a, nil
}
