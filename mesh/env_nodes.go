package mesh

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxNodes bounds what a list of nodes may stand for.
const MaxNodes = 1 << 16

// maxHost bounds the name of a node, as DNS does.
const maxHost = 253

var errBrackets = errors.New("its brackets do not match")

// Nodes are the hosts that Slurm's short form of a list stands for, in its order:
// "n[1-3,07],gpu" is n1, n2, n3, n07 and gpu. A range keeps the zeros of its first
// number, and of several ranges in one name the last varies fastest. There is at least
// one host and at most MaxNodes. The form is that of scontrol show hostnames.
func Nodes(list string) ([]string, error) {
	terms, err := split(list)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, term := range terms {
		some, err := expand(term, MaxNodes-len(hosts))
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, some...)
	}
	return hosts, nil
}

// split cuts a list at the commas that are outside of brackets.
func split(list string) (terms []string, err error) {
	inside, start := false, 0
	for i, r := range list + "," {
		switch {
		case r == '[' && !inside, r == ']' && inside:
			inside = !inside
		case r == '[' || r == ']':
			return nil, errBrackets
		case r == ',' && !inside:
			if i == start {
				return nil, errors.New("a name is empty")
			}
			terms = append(terms, list[start:i])
			start = i + 1
		}
	}
	if inside {
		return nil, errBrackets
	}
	return terms, nil
}

// expand writes out the brackets of one term, whose brackets match.
func expand(term string, most int) ([]string, error) {
	hosts := []string{""}
	for term != "" {
		plain, rest, ranged := strings.Cut(term, "[")
		endings := []string{""}
		if ranged {
			ranges, after, _ := strings.Cut(rest, "]")
			var err error
			if endings, err = numbers(ranges, most); err != nil {
				return nil, err
			}
			rest = after
		}
		if len(hosts)*len(endings) > most {
			return nil, fmt.Errorf("it stands for more than %d nodes", MaxNodes)
		}
		longer := make([]string, 0, len(hosts)*len(endings))
		for _, h := range hosts {
			for _, e := range endings {
				longer = append(longer, h+plain+e)
			}
		}
		if hosts, term = longer, rest; len(hosts[0]) > maxHost {
			return nil, fmt.Errorf("a name is longer than %d bytes", maxHost)
		}
	}
	if len(hosts) > most {
		return nil, fmt.Errorf("it stands for more than %d nodes", MaxNodes)
	}
	return hosts, nil
}

// numbers are those of "1-3,07".
func numbers(ranges string, most int) (all []string, err error) {
	for _, r := range strings.Split(ranges, ",") {
		from, to, ranged := strings.Cut(r, "-")
		if !ranged {
			to = from
		}
		low, err1 := strconv.ParseUint(from, 10, 32)
		high, err2 := strconv.ParseUint(to, 10, 32)
		if err1 != nil || err2 != nil || low > high {
			return nil, fmt.Errorf("%q is not a number or a range", r)
		}
		if high-low >= uint64(most-len(all)) {
			return nil, fmt.Errorf("it stands for more than %d nodes", MaxNodes)
		}
		for n := low; n <= high; n++ {
			all = append(all, fmt.Sprintf("%0*d", len(from), n))
		}
	}
	return all, nil
}
