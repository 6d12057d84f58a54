package trainer

import (
	"context"
	"fmt"
	"testing"

	"peermesh/ops"
	"peermesh/ops/tensor"
)

func TestCutLast(t *testing.T) {
	f32 := func(n int) *Param { return floats[float32]("f", n, 0) }
	convnet := []*Param{f32(144), f32(16), f32(4608), f32(32), f32(294912), f32(64), f32(640), f32(10)}
	few := []*Param{f32(3), f32(2), f32(1)}
	for _, c := range []struct {
		name              string
		params            []*Param
		first, rest, most int
		want              [][]int
	}{
		{"nothing", nil, 100, 100, 10, nil},
		{"as PyTorch", convnet, DefaultFirstBucket, DefaultBucket, 0, [][]int{{7, 6, 5, 4}, {3, 2, 1, 0}}},
		{"convnet", convnet, DefaultFirstBucket, DefaultBucket, 16 << 10, [][]int{{7, 6, 5, 4}, {3, 2}, {1, 0}}},
		{"small enough", few, 1000, 1000, 24, [][]int{{2, 1, 0}}},
		{"up to", few, 1000, 1000, 20, [][]int{{2}, {1, 0}}},
		{"one at least", few, 1000, 1000, 1, [][]int{{2, 1}, {0}}},
		{"one alone", few, 1, 1, 1, [][]int{{2}, {1}, {0}}},
		{"of doubles", []*Param{floats[float64]("d", 1, 0), floats[float64]("d", 1, 0)}, 100, 100, 8, [][]int{{1}, {0}}},
	} {
		all := cutLast(assign(c.params, lastToFirst(c.params), c.first, c.rest), c.params, c.most)
		checkBuckets(t, c.name, all, c.params, c.want)
	}
}

// What is ready last travels by itself where the next forward pass waits for it, in a group of
// its own, so that no bucket before it keeps it; and where nobody does, as in PyTorch.
func TestLastBucketGoesApart(t *testing.T) {
	update := func(int) error { return nil }
	for _, c := range []struct {
		name    string
		config  DDPConfig
		buckets string
		groups  string // by bucket: the first, second or third that was seen
	}{
		{"by default", DDPConfig{}, "[[c] [b a]]", "[0 0]"},
		{"abreast", DDPConfig{Abreast: true}, "[[c] [b a]]", "[0 1]"},
		{"one after the other", DDPConfig{Update: update}, "[[c] [b a]]", "[0 0]"},
		{"lazy", DDPConfig{Abreast: true, Update: update}, "[[c] [b] [a]]", "[0 1 2]"},
		{"lazy, in views", DDPConfig{Abreast: true, Update: update, Views: true}, "[[c] [b] [a]]", "[0 1 2]"},
		{"asked for", DDPConfig{Abreast: true, LastBucket: 8}, "[[c] [b] [a]]", "[0 1 2]"},
		{"all of it", DDPConfig{Abreast: true, Update: update, LastBucket: 1 << 20}, "[[c] [b a]]", "[0 1]"},
	} {
		noErrors(t, ranks(2, func(g *ops.Group) error {
			params := []*Param{floats[float32]("a", 2, 0), floats[float32]("b", 10_000, 1), floats[float32]("c", 9, 2)}
			var buckets [][]string
			var ways []int
			seen := make(map[*ops.Group]int)
			config := c.config
			config.FirstBucket = 1
			config.Hook = HookFunc(func(ctx context.Context, g *ops.Group, b Bucket) Pending {
				if _, ok := seen[g]; !ok {
					seen[g] = len(seen)
				}
				ways = append(ways, seen[g])
				var names []string
				for _, p := range b.Params {
					names = append(names, p.Name)
				}
				buckets = append(buckets, names)
				return g.AllReduce(ctx, b.Data, tensor.Sum)
			})
			d, err := NewDDP(context.Background(), g, params, config)
			if err != nil {
				return err
			}
			for range 2 {
				buckets, ways = nil, nil
				for i := len(params) - 1; i >= 0; i-- {
					d.Ready(i)
				}
				if err := d.Wait(); err != nil {
					return err
				}
			}
			if fmt.Sprint(buckets) != c.buckets {
				return fmt.Errorf("%s: buckets %v, want %s", c.name, buckets, c.buckets)
			}
			if fmt.Sprint(ways) != c.groups {
				return fmt.Errorf("%s: groups %v, want %s", c.name, ways, c.groups)
			}
			return nil
		}))
	}
}
