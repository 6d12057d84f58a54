package mesh

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"peermesh/node"
)

// readSpec is the specification.
func readSpec(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The specification's numbers are the code's.
func TestSpec(t *testing.T) {
	spec := readSpec(t)
	for _, row := range []string{
		fmt.Sprintf("| MaxWorld | %d |", MaxWorld),
		fmt.Sprintf("| MaxName | %d |", MaxName),
		fmt.Sprintf("| maxKnown | %d |", maxKnown),
		fmt.Sprintf("| maxAnnouncement | %d |", maxAnnouncement),
		fmt.Sprintf("| maxAddrs, maxAddr | %d, %d |", maxAddrs, maxAddr),
		fmt.Sprintf("| maxText | %d |", maxText), fmt.Sprintf("| MaxTerms | %d |", MaxTerms),
		fmt.Sprintf("| maxSignal | %d |", maxSignal),
		fmt.Sprintf("| maxCause | %d |", maxCause),
		fmt.Sprintf("| MaxLanes | %d |", MaxLanes),
		fmt.Sprintf("| maxHeld | %d |", maxHeld),
		fmt.Sprintf("| maxDoubt | %d |", maxDoubt), fmt.Sprintf("| maxPassed | %d |", maxPassed), fmt.Sprintf("| maxBare | %d |", maxBare),
		fmt.Sprintf("Version %d. Peers", protocolVersion), fmt.Sprintf("version (u16, %d)", stateVersion),
		fmt.Sprintf("| maxLine, maxLineMembers | %d, %d |", maxLine, maxLineMembers),
		fmt.Sprintf("| crowded | %d |", crowded), fmt.Sprintf("hubs are the %d peers", hubCount),
		fmt.Sprintf("peers for %.0f s after", hubPatience.Seconds()),
		fmt.Sprintf("| maxFull | %d |", maxFull), fmt.Sprintf("| maxState | %d |", maxState),
		fmt.Sprintf("for %.1f s and the", quietFloor.Seconds()), fmt.Sprintf("has not for %d ms", linkPatience.Milliseconds()),
		fmt.Sprintf("or else in %.0f s", linkTimeout.Seconds()), fmt.Sprintf("after %.0f s without a proposal", patience.Seconds()),
		fmt.Sprintf("a hello of %d bytes", helloSize),
		fmt.Sprintf("| tag | %d bytes |", tagSize),
		fmt.Sprintf("%d + maxCause bytes", endHead),
		fmt.Sprintf("every %d ms, or %d ms in", beatEvery.Milliseconds(), beatSparse.Milliseconds()),
		fmt.Sprintf("or %d ms have passed", partTimeout.Milliseconds()),
		fmt.Sprintf("most %.0f s until each receiver", leaveTimeout.Seconds()),
		fmt.Sprintf("A hello may take\n%.0f s", helloTimeout.Seconds()),
		fmt.Sprintf("A meeting may take %.0f s", meetTimeout.Seconds()),
		fmt.Sprintf("again in %d ms to %d ms", retryFirst.Milliseconds(), retryMost.Milliseconds()),
		fmt.Sprintf("%.0f minutes after it was signed", lifetime.Minutes()),
		fmt.Sprintf("or %.0f s have\npassed", promiseHold.Seconds()), fmt.Sprintf("The proposer waits %.0f s", voteTimeout.Seconds()),
		"| maxMessage | 2^40 |", "| maxEpoch | 2^62 |", "| maxJump | 2^20 |", "| maxClaim | 2^16 |",
		"`" + envelopeDomain + "`", fmt.Sprintf("`% x`", envelopeCodec), "`" + topicPrefix + "NAME`",
		"## " + string(meetProtocol), "## " + string(formProtocol),
		"### " + string(controlProtocol), "### " + string(laneProtocol), "### " + string(burstProtocol),
		fmt.Sprintf("| maxReadings | %d |", maxReadings), "| maxRate | 10^15 |", fmt.Sprintf("of %d echoes' round", echoes),
		fmt.Sprintf("given up after %.0f s", echoTime.Seconds()), fmt.Sprintf("(less than %d µs)", farFrom.Microseconds()),
		fmt.Sprintf("to %d pieces of %d KiB", nearBurst/burstPiece, burstPiece>>10), fmt.Sprintf("or %d pieces", farBurst/burstPiece),
		fmt.Sprintf("for at most %d ms", burstTime.Milliseconds()), fmt.Sprintf("may take %.0f s. A rank", burstLimit.Seconds()),
	} {
		if !strings.Contains(spec, row) {
			t.Errorf("SPEC.md lacks %q", row)
		}
	}
	if maxMessage != 1<<40 || maxEpoch != 1<<62 || maxJump != 1<<20 || maxClaim != 1<<16 {
		t.Error("SPEC.md has other bounds")
	}
}

// So are its codes.
func TestSpecCodes(t *testing.T) {
	spec := readSpec(t)
	for code, text := range map[uint8]string{
		refuseVersion: "another version", refuseName: "another mesh name", refuseSize: "another size of world",
		refuseTerms: "other terms", refuseFull: "the world is complete", refuseIdentity: "the peer ID is", declineBusy: "has acknowledged",
		declineStale: "the proposal rests", declineWorld: "is in a world", declineIdle: "does not want a world",
		declineQuorum: "the members may not go on", declineExpired: "the announcement has expired",
	} {
		if !strings.Contains(spec, fmt.Sprintf("| %d | %s", code, text)) {
			t.Errorf("SPEC.md lacks code %d, %s", code, text)
		}
	}
	for code, text := range map[uint8]string{
		frameBeat: "beat", frameSignal: "signal", frameEnd: "end", frameLeave: "leave", frameGoodbye: "goodbye",
		frameIn: "in", frameStand: "stand", frameEcho: "echo", frameRates: "rates",
	} {
		if !strings.Contains(spec, fmt.Sprintf("| %d %s |", code, text)) {
			t.Errorf("SPEC.md lacks frame %d, %s", code, text)
		}
	}
	if !strings.Contains(spec, fmt.Sprintf("| %#x | one stream too many |", uint32(node.CodeLimit))) {
		t.Error("SPEC.md has another code for one stream too many")
	}
}
