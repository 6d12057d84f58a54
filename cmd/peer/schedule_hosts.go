package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"peermesh/gpu"
	"peermesh/ops"
	"peermesh/ops/schedule"
)

// hostFlags say which ranks share a host, and what a link inside one is like.
type hostFlags struct {
	Hosts       string        `placeholder:"SIZES" help:"Ranks of each host, as 2,2,3: then --latency and --rate are of links between hosts."`
	GPUs        string        `name:"gpus" placeholder:"LIST" help:"GPU of each rank, hosts apart, as 0,1,1/0,1 (- for none): the all-reduce of package gpu."`
	NearLatency time.Duration `default:"40us" placeholder:"TIME" help:"Latency of a link inside a host, as of ranks that share processors (1us if they do not)."`
	NearRate    size          `default:"8GB" placeholder:"SIZE" help:"Bytes that a link inside a host carries a second."`

	Cores int `placeholder:"N" help:"Processors of each host, which its ranks share (one for each)."`

	hosts []int      // of each rank; empty if nothing is said
	seats []gpu.Seat // of each rank; likewise
}

// seat reads the flags. The hosts have all ranks, which need not be counted then.
func (f *hostFlags) seat(ranks *int, kind string) error {
	f.hosts, f.seats = nil, nil
	var err error
	switch {
	case f.Hosts != "" && f.GPUs != "":
		return errors.New("--hosts and --gpus both say which ranks share a host: give one or the other")
	case f.GPUs != "" && kind != "all-reduce":
		return fmt.Errorf("--gpus is for all-reduce, not for %s", kind)
	case f.NearRate < 1 || f.NearLatency < 0:
		return fmt.Errorf("a link inside a host of %v and %v/s, want 0 or more and at least one byte", f.NearLatency, f.NearRate)
	case f.Cores < 0 || f.Cores > maxHostCores:
		return fmt.Errorf("--cores is %d, want 1 to %d", f.Cores, maxHostCores)
	case f.Cores > 0 && f.Hosts == "" && f.GPUs == "":
		return errors.New("--cores are of hosts: give --hosts, too")
	case f.Hosts != "":
		err = f.readHosts()
	case f.GPUs != "":
		err = f.readGPUs()
	default:
		return nil
	}
	*ranks = len(f.hosts)
	return err
}

func (f *hostFlags) readHosts() error {
	for host, text := range strings.Split(f.Hosts, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > schedule.MaxRanks-len(f.hosts) {
			return fmt.Errorf("--hosts %s: %q, want ranks of a host, as in 2,2,3, at most %d in all", f.Hosts, text, schedule.MaxRanks)
		}
		f.hosts = append(f.hosts, slices.Repeat([]int{host}, n)...)
	}
	return nil
}

func (f *hostFlags) readGPUs() error {
	for host, list := range strings.Split(f.GPUs, "/") {
		for text := range strings.SplitSeq(list, ",") {
			seat := gpu.Seat{Host: strconv.Itoa(host)}
			if text = strings.TrimSpace(text); text != "-" {
				n, err := strconv.ParseUint(text, 10, 8)
				if err != nil {
					return fmt.Errorf("--gpus %s: %q, want the number of a GPU, or - for none", f.GPUs, text)
				}
				seat.GPU = [16]byte{byte(host), byte(host >> 8), byte(n), 1}
			}
			f.hosts, f.seats = append(f.hosts, host), append(f.seats, seat)
		}
	}
	if len(f.seats) > schedule.MaxRanks {
		return fmt.Errorf("--gpus has %d ranks, at most %d", len(f.seats), schedule.MaxRanks)
	}
	return nil
}

// words are what the links inside hosts are like, for the line that has those between.
func (f *hostFlags) words() string {
	if len(f.hosts) == 0 {
		return ""
	}
	text := fmt.Sprintf(" between hosts, %v and %v/s inside", f.NearLatency, f.NearRate)
	if f.Cores > 0 {
		text += fmt.Sprintf(", on %d processors each", f.Cores)
	}
	return text
}

// links are those of all ranks, of which far ones are given.
func (f *hostFlags) links(far schedule.Uniform) schedule.Links {
	if len(f.hosts) == 0 {
		return far
	}
	return hostLinks{far, schedule.Uniform{Delay: f.NearLatency, BytesPerSecond: float64(f.NearRate)}, f.hosts, f.Cores}
}

// hostLinks are two kinds of links: inside a host, and between hosts.
type hostLinks struct {
	far, near schedule.Uniform
	hosts     []int
	cores     int // of each host; 0: enough
}

var _ ops.Shared = hostLinks{}

// maxHostCores bounds --cores.
const maxHostCores = 1 << 16

// Share is of a processor.
func (l hostLinks) Share(rank int) float64 {
	there := 0
	for _, h := range l.hosts {
		if h == l.hosts[rank] {
			there++
		}
	}
	if l.cores == 0 {
		return 1
	}
	return min(1, float64(l.cores)/float64(there))
}

func (l hostLinks) between(a, b int) schedule.Uniform {
	if l.hosts[a] == l.hosts[b] {
		return l.near
	}
	return l.far
}

// Host is not 0 for any rank.
func (l hostLinks) Host(rank int) int64                { return int64(l.hosts[rank]) + 1 }
func (l hostLinks) Latency(from, to int) time.Duration { return l.between(from, to).Delay }
func (l hostLinks) Rate(from, to int) (bytesPerSecond float64) {
	return l.between(from, to).BytesPerSecond
}

// gpuAlgorithm is what the schedule of GPUs is called.
const gpuAlgorithm = "gpu"

// withGPUs adds the schedule of GPUs to others, by its price; no group takes it by itself.
func (f *hostFlags) withGPUs(all []ops.Candidate, bytes int64, l schedule.Links) []ops.Candidate {
	if len(f.seats) == 0 {
		return all
	}
	s := gpuSchedule(gpu.Arrange(f.seats))
	all = append(all, ops.Candidate{Schedule: s, Price: schedule.Price(s, int(bytes), l), Named: true})
	slices.SortStableFunc(all, func(a, b ops.Candidate) int { return cmp.Compare(a.Price, b.Price) })
	return all
}

// gpuSchedule is what gpu.Comm.AllReduceAcross does among the heads of sites, as moves:
// ranks that share a GPU, and those without, reduce to its head first; each host's heads
// reduce parts, as many as the host with the fewest has heads; the heads of one part on all
// hosts reduce it; and everything goes back the way it came.
func gpuSchedule(sites []gpu.Site) schedule.Schedule {
	n := 0
	for _, site := range sites {
		for _, u := range site.Units {
			n += len(u.Ranks)
		}
	}
	up := schedule.Schedule{Ranks: n, Chunks: 1}
	var heads []int // those that go on
	var hosts schedule.Hosts
	for _, site := range sites {
		of := site.Heads()
		if len(of) == 0 {
			of = []int{site.Units[0].Head()} // a host without a GPU has one speak for it
		}
		for _, u := range site.Units {
			group := u.Ranks
			if !u.Device() && u.Head() != of[0] {
				group = append([]int{of[0]}, u.Ranks...)
			}
			up = up.With(schedule.Binomial(len(group)).On(n, group))
		}
		var places []int
		for _, r := range of {
			places = append(places, len(heads))
			heads = append(heads, r)
		}
		hosts = append(hosts, places)
	}
	across := func(n int) schedule.Schedule { return schedule.AllReduce(schedule.Ring(n)) }
	mid := hosts.AllReduce(hosts.Fewest(), schedule.Direct, across)
	s := up.Then(mid.On(n, heads)).Then(up.Reverse())
	s.Rounds = slices.DeleteFunc(s.Rounds, func(r schedule.Round) bool { return len(r) == 0 })
	s.Name = gpuAlgorithm + "(" + mid.Name + ")"
	return s
}
