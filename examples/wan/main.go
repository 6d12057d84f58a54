package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"peermesh/trainer/local"
	"peermesh/trainer/mnist"
)

type options struct {
	ranks, epochs, steps, batch, threads, look int
	seed                                       uint64
	target                                     float64 // per cent
	rate                                       float64 // of the modelled links, Mbit/s
	delay                                      time.Duration
	price                                      float64 // of the links that are only counted with
	latency                                    time.Duration
	net                                        string
	env                                        bool
}

// total is how many steps a run has that does not end at its target.
func (o options) total(train *mnist.Set) int {
	all := o.epochs * (train.Len() / o.ranks / (o.batch / o.ranks))
	if o.steps > 0 {
		return min(o.steps, all)
	}
	return all
}

const contenders = "ddp,ddp+int8,localsgd/8,localsgd/8+int8,diloco/50,diloco/50+int8,diloco/50+int4,late/50+int8,streaming/48+int4,sma/4,pairs/4"

func main() {
	var o options
	flag.IntVar(&o.ranks, "ranks", 4, "ranks that train together, nodes of this process")
	flag.IntVar(&o.epochs, "epochs", 1, "times through the training set")
	flag.IntVar(&o.steps, "steps", 0, "steps at most; 0: all of the epochs")
	flag.IntVar(&o.batch, "batch", 128, "samples of a step, of all ranks together")
	flag.IntVar(&o.threads, "threads", 1, "threads of a rank")
	flag.Uint64Var(&o.seed, "seed", 0, "of the initial parameters, the order of the samples and dropout, the same for all methods and ranks")
	flag.IntVar(&o.look, "look", 0, "steps from one test to the next, until one reaches the target, which ends the run; 0: one test at the end")
	flag.Float64Var(&o.target, "target", 98, "per cent of the test set to be reached")
	flag.Float64Var(&o.rate, "rate", 0, "Mbit/s of modelled links; 0: links in memory")
	flag.DurationVar(&o.delay, "delay", 0, "of modelled links, one way")
	flag.Float64Var(&o.price, "price", 200, "Mbit/s of the links of the column that is computed")
	flag.DurationVar(&o.latency, "latency", 40*time.Millisecond, "of the same, one way")
	methods := flag.String("methods", contenders, "what to compare: name[/every][+codec]; names are ddp, lazy, late, "+strings.Join(local.Names(), ", "))
	only := flag.Bool("overlap", false, "print instead how computing and communication overlap in DDP, in virtual time on links of -rate and -delay")
	codec := flag.String("codec", "", "of -overlap: a codec of trainer/compress")
	flag.StringVar(&o.net, "net", "", "convnet, mlp or, for -overlap only, example, that of PyTorch's MNIST example (default convnet; with -overlap example)")
	flag.BoolVar(&o.env, "env", false, "be one rank of a world that the environment names, as peer launch or torchrun set it: on links that are there")
	dir := flag.String("data", "", "folder of MNIST's four files; found or fetched if empty")
	flag.Parse()
	if *only {
		if err := overlap(context.Background(), os.Stdout, *codec, o, 0.25, 0.5, 1, 1.5, 2, 4); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := contest(context.Background(), strings.Split(*methods, ","), *dir, o); err != nil {
		log.Fatal(err)
	}
}

// contest runs all methods and prints a line for each.
func contest(ctx context.Context, methods []string, dir string, o options) error {
	if _, err := trained(o.net); err != nil { // before anybody waits for others
		return err
	}
	var all []contender
	for _, text := range methods {
		c, err := parse(text)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	data, err := mnist.Load(ctx, mnist.Config{Dir: dir})
	if err != nil {
		return err
	}
	at, rank, leave := here(o), 0, func() error { return nil }
	if o.env {
		if at, rank, o.ranks, leave, err = joined(ctx); err != nil {
			return err
		}
	}
	err = table(ctx, os.Stdout, at, rank, data, all, o)
	return errors.Join(err, leave())
}

// table has all compete, and prints a line for each on rank 0.
func table(ctx context.Context, to io.Writer, at venue, rank int, data *mnist.Data, all []contender, o options) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "method\tsteps\tMB a rank\tless\taccuracy\ttook\twaiting\tto %v %%\tat step\tlink, computed\t\n", o.target)
	var first int64
	for i, c := range all {
		out, err := compete(ctx, at, uint32(i+1), data, c, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.text, err)
		}
		if rank != 0 {
			continue
		}
		if first == 0 {
			first = out.sent
		}
		hit, step := "–", "–"
		if out.hit > 0 {
			hit, step = fmt.Sprintf("%.1fs", out.hit.Seconds()), fmt.Sprint(out.hitSteps)
		}
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.1f×\t%.2f %%\t%.1fs\t%.1fs\t%s\t%s\t%.1fs\t\n", c.text, out.steps, float64(out.sent)/1e6,
			float64(first)/float64(out.sent), 100*out.accuracy, out.took.Seconds(), out.waited.Seconds(), hit, step, onLink(out, c, o).Seconds())
		log.Printf("%s: %d steps in %.1fs, %.2f %%", c.text, out.steps, out.took.Seconds(), 100*out.accuracy)
	}
	if rank != 0 {
		return nil
	}
	return t.Flush()
}
