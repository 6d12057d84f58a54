package mesh

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTerms bounds a Config's Terms in bytes, with one more for each.
const MaxTerms = 512

// validTerms reports whether terms can travel: printable, and not too many.
func validTerms(terms []string) bool {
	size := 0
	for _, t := range terms {
		size += len(t) + 1
		if t == "" || size > MaxTerms || !utf8.ValidString(t) || strings.ContainsFunc(t, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return false
		}
	}
	return true
}

// joinTerms and splitTerms are their form on the wire.
func joinTerms(terms []string) []byte { return []byte(strings.Join(terms, "\n")) }

func splitTerms(p []byte) []string {
	if len(p) == 0 {
		return nil
	}
	return strings.Split(string(p), "\n")
}

// unlike says how theirs differ from ours, as one would tell them; empty: not at all.
func unlike(theirs, ours []string) string {
	if slices.Equal(theirs, ours) {
		return ""
	}
	without := func(some, others []string) string {
		some = slices.DeleteFunc(slices.Clone(some), func(t string) bool { return slices.Contains(others, t) })
		if len(some) == 0 {
			return "nothing else"
		}
		return strings.Join(some, ", ")
	}
	return fmt.Sprintf("its terms are %s, this peer's %s", without(ours, theirs), without(theirs, ours))
}
