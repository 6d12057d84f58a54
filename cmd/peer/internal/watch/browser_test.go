package watch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// serve serves a board until the end of the test.
func serve(t testing.TB, b *Board, o Options) *Server {
	t.Helper()
	if o.Addr == "" {
		o.Addr = ":0"
	}
	s, err := Listen(b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// keepPicture keeps a picture of the page in the folder that PEERMESH_PICTURES names.
func keepPicture(t *testing.T, b *browser, name string) {
	if dir := os.Getenv("PEERMESH_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), b.picture(), 0o666); err != nil {
			t.Error(err)
		}
	}
}

// What Lighthouse and a person with a keyboard or a screen reader would look at, in
// Chromium, for a small world and a large one, in light and dark.
func TestPageInBrowser(t *testing.T) {
	b := openBrowser(t, 1400, 1180)
	var dark []byte
	for _, size := range []int{4, 64} {
		board, _ := fakeBoard(size)
		s := serve(t, board, Options{})
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d ranks, %s", size, scheme), func(t *testing.T) {
				b.on(t)
				b.open(s.URL(), scheme)
				b.wait("three updates", "return document.body.dataset.updates >= 3")
				b.wait("the others' reports", "return !document.querySelector('.node.unknown')")
				keepPicture(t, b, fmt.Sprintf("%d-%s", size, scheme))
				t.Run("legible", func(t *testing.T) { legible(t, b, size) })
				t.Run("contrast", func(t *testing.T) { contrast(t, b) })
				t.Run("names", func(t *testing.T) { names(t, b) })
				t.Run("keyboard", func(t *testing.T) { keyboard(t, b, size) })
				b.on(t)
				for _, c := range b.complaints() {
					t.Errorf("on the console: %s", c)
				}
				if scheme == "dark" {
					dark = b.picture()
				} else if bytes.Equal(dark, b.picture()) {
					t.Error("light and dark look alike")
				}
			})
		}
	}
}

// legible compares where things are: every rank is drawn, within the picture, and no
// label is on another.
func legible(t *testing.T, b *browser, size int) {
	b.on(t)
	var nodes int
	var overlaps []string
	b.run(&nodes, `return document.querySelectorAll('.node').length`)
	if nodes != size+1 { // and one who is gone
		t.Errorf("%d nodes", nodes)
	}
	b.run(&overlaps, `
		const texts = [...document.querySelectorAll('#map text')].filter(e => e.textContent && !e.classList.contains('word'));
		const boxes = texts.map(e => [e.textContent, e.getBoundingClientRect()]);
		const map = document.querySelector('#map').getBoundingClientRect(), bad = [];
		for (const [i, [text, a]] of boxes.entries()) {
			if (a.left < map.left || a.right > map.right || a.top < map.top || a.bottom > map.bottom) bad.push(text + ' is outside');
			for (const [other, c] of boxes.slice(i + 1)) {
				if (a.left < c.right && c.left < a.right && a.top < c.bottom && c.top < a.bottom) bad.push(text + ' is on ' + other);
			}
		}
		for (const e of document.querySelectorAll('.word')) {
			const a = e.getBoundingClientRect();
			if (e.textContent && (a.left < map.left - 1 || a.right > map.right + 1 || a.top < map.top - 1 || a.bottom > map.bottom + 1)) bad.push(e.textContent + ' is cut off');
		}
		const circles = [...document.querySelectorAll('.node .body')].map(e => e.getBoundingClientRect());
		circles.forEach((a, i) => { const c = circles[(i + 1) % circles.length];
			if (Math.hypot(a.x - c.x, a.y - c.y) < a.width) bad.push('ranks ' + i + ' and ' + (i + 1) + ' touch'); });
		const small = Math.min(...texts.map(e => e.getBoundingClientRect().height));
		if (small < 9) bad.push('a label is ' + small + ' pixels high');
		if (document.documentElement.scrollWidth > innerWidth) bad.push('the page is wider than the window');
		return bad;`)
	for _, o := range overlaps {
		t.Error(o)
	}
}

// contrast computes that of every text with what is behind it (WCAG 2.2, 1.4.3: at
// least 4.5 to 1).
func contrast(t *testing.T, b *browser) {
	b.on(t)
	var poor []string
	b.run(&poor, `
		const rgb = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
		const light = (c) => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
		const ratio = (a, b) => { const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
		const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
		const bad = [];
		for (const e of document.querySelectorAll('body *')) {
			if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest('noscript, script')) continue;
			const style = getComputedStyle(e), drawn = e instanceof SVGElement;
			const inside = drawn && !e.classList.contains('word') && e.parentElement.querySelector(':scope > .body');
			const back = inside ? rgb(getComputedStyle(inside).fill).slice(0, 3) : behind(e);
			const r = ratio(rgb(drawn ? style.fill : style.color).slice(0, 3), back);
			if (r < 4.5) bad.push(e.tagName + ' ' + e.textContent.slice(0, 30) + ': ' + r.toFixed(2));
		}
		return bad;`)
	for _, p := range poor {
		t.Errorf("contrast: %s", p)
	}
}

// names asks the browser's accessibility tree, by what a screen reader is told.
func names(t *testing.T, b *browser) {
	b.on(t)
	var missing []string
	b.run(&missing, `
		const bad = [], ids = new Set();
		for (const e of document.querySelectorAll('[id]')) { if (ids.has(e.id)) bad.push('two of #' + e.id); ids.add(e.id); }
		for (const e of document.querySelectorAll('[aria-labelledby]')) if (!ids.has(e.getAttribute('aria-labelledby'))) bad.push(e.outerHTML.slice(0, 60));
		for (const e of document.querySelectorAll('[tabindex], [role=img], [role=button], [role=progressbar], main > section'))
			if (!e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')) bad.push('no name: ' + e.outerHTML.slice(0, 60));
		for (const e of document.querySelectorAll('img')) if (e.getAttribute('alt') === null) bad.push('no alt');
		if (!document.documentElement.lang || !document.title) bad.push('no language or title');
		if (document.querySelectorAll('h1').length !== 1 || document.querySelectorAll('main').length !== 1) bad.push('not one h1 and main');
		for (const e of document.querySelectorAll('th')) if (e.scope !== 'col') bad.push('th without scope');
		return bad;`)
	for _, m := range missing {
		t.Error(m)
	}
	var role, label string
	var id struct {
		Ref string `json:"element-6066-11e4-a52e-4f735466cecf"` // WebDriver's name of a reference
	}
	b.call("POST", b.session+"/element", map[string]string{"using": "css selector", "value": ".node[aria-pressed=true]"}, &id)
	b.call("GET", b.session+"/element/"+id.Ref+"/computedrole", nil, &role)
	b.call("GET", b.session+"/element/"+id.Ref+"/computedlabel", nil, &label)
	if role != "button" || !strings.HasPrefix(label, "rank 0, here, step ") {
		t.Errorf("the chosen rank is the %s %q", role, label)
	}
}

// keyboard goes through the page by keys alone.
func keyboard(t *testing.T, b *browser, size int) {
	b.on(t)
	const where = `const e = document.activeElement; return e.getAttribute('aria-label') ?? e.textContent.trim().slice(0, 40)`
	focus := func() (name string) {
		b.run(&name, where)
		return name
	}
	for i, want := range []string{"Skip to the world", "rank 0, here", "Links of the rank", "Operations in flight", "Operations that have ended", "Events, the newest first"} {
		b.press(keyTab)
		if got := focus(); !strings.HasPrefix(got, want) {
			t.Fatalf("after %d tabs on %q, want %q", i+1, got, want)
		}
	}
	b.run(nil, `document.querySelector('.node[tabindex="0"]').focus()`)
	b.press(keyRight)
	var seen bool
	b.run(&seen, `const s = getComputedStyle(document.activeElement.querySelector('.ring')); return s.stroke !== 'none' && parseFloat(s.strokeWidth) >= 2`)
	if got := focus(); !strings.HasPrefix(got, "rank 1, here") || !seen {
		t.Errorf("after an arrow on %q; to be seen: %v", got, seen)
	}
	var about string
	b.run(&about, `return document.getElementById('about').textContent`)
	if !strings.HasPrefix(about, "Rank 1 is at work") {
		t.Errorf("about: %q", about)
	}
	b.press(keyEnd)
	if got := focus(); !strings.Contains(got, fmt.Sprintf("gone, was rank %d of world 1", size)) {
		t.Errorf("at the end on %q", got)
	}
	b.wait("an update", "return document.body.dataset.updates >= 5")
	if got := focus(); !strings.Contains(got, "gone") {
		t.Errorf("an update took the focus to %q", got)
	}
}

// A page that loses its peer says so, and goes on when it is back.
func TestPageComesBack(t *testing.T) {
	b := openBrowser(t, 800, 900)
	board, w := fakeBoard(3)
	s := serve(t, board, Options{})
	b.open(s.URL(), "light")
	b.wait("a first update", "return document.body.dataset.updates >= 1")
	_ = s.Close()
	b.wait("word of the loss", "return document.getElementById('connection').dataset.state === 'lost'")
	board.Exit(fmt.Errorf("rank 2 has died"), 2)
	again := serve(t, board, Options{Addr: s.addr.String()})
	b.wait("a live connection", "return document.getElementById('connection').dataset.state === 'live'")
	b.wait("the lost rank", "return document.querySelectorAll('.node.gone').length === 2") // and the one of fakeBoard
	next := newFake(1, 2)
	next.epoch = w.epoch + 1
	board.Enter(next.place())
	b.wait("the next world", "return document.getElementById('standing').textContent.startsWith('world 3 · 2 of 4 ranks')")
	var events string
	b.run(&events, `return document.getElementById('events').textContent`)
	for _, want := range []string{"world 2 has ended: rank 2 has died", "rank 2 of world 2 is gone"} {
		if !strings.Contains(events, want) {
			t.Errorf("no event %q in %s", want, events)
		}
	}
	if again.URL() != s.URL() {
		t.Errorf("back at %s, was at %s", again.URL(), s.URL())
	}
}
