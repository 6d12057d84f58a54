package watch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	chromium, chromedriver = "chromium", "chromedriver"
	// browserTime bounds one command to the browser, pageTime what the page is waited for:
	// far above what they take, for a machine that has much else to do. Nothing waits so
	// long unless it fails.
	browserTime, pageTime = 3 * time.Minute, 2 * time.Minute
	// starts is how often a browser is started: chromedriver gives it a minute, in which a
	// busy machine may not even have read it from the disk.
	starts = 4
)

// A browser is a headless Chromium, driven by chromedriver over W3C WebDriver
// (https://www.w3.org/TR/webdriver2/): a few HTTP requests with JSON in them.
type browser struct {
	t       testing.TB
	driver  string // URL
	session string
}

// openBrowser starts one, with a fresh profile, and ends it with the test. Without a
// Chromium the test is skipped.
func openBrowser(t testing.TB, width, height int) *browser {
	t.Helper()
	for _, name := range []string{chromium, chromedriver} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the page is not tried in a browser: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, chromedriver, "--port=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
	})
	b := &browser{t: t, driver: "http://127.0.0.1:" + portOf(t, out)}
	flags := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir(), fmt.Sprintf("--window-size=%d,%d", width, height)}
	var made struct {
		SessionID string `json:"sessionId"`
	}
	wanted := map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"args": flags},
		"goog:loggingPrefs":  map[string]any{"browser": "ALL"},
	}}}
	for i := 1; ; i++ {
		err := b.try("POST", "/session", wanted, &made)
		if err == nil {
			break
		}
		if i == starts {
			t.Fatalf("no browser after %d starts: %v", i, err)
		}
		t.Logf("start %d: %.100v", i, err)
	}
	b.session = "/session/" + made.SessionID
	t.Cleanup(func() { b.call("DELETE", b.session, nil, nil) })
	return b
}

// on has what goes wrong told to a test.
func (b *browser) on(t testing.TB) { b.t = t }

// portOf reads chromedriver's port off what it prints, and goes on reading.
func portOf(t testing.TB, out io.Reader) string {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), "successfully on port "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return strings.Trim(after, ". ")
		}
	}
	t.Fatal("chromedriver says no port")
	return ""
}

// call makes a request and reads the value of the answer.
func (b *browser) call(method, path string, body, value any) {
	b.t.Helper()
	if err := b.try(method, path, body, value); err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
}

func (b *browser) try(method, path string, body, value any) error {
	ctx, cancel := context.WithTimeout(context.Background(), browserTime)
	defer cancel()
	var p []byte
	if method == "POST" {
		if body == nil {
			body = struct{}{}
		}
		var err error
		if p, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, b.driver+path, bytes.NewReader(p))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var got struct{ Value json.RawMessage }
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %.500s", answer.Status, got.Value)
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(got.Value, value)
}

// open goes to a page, in light or dark.
func (b *browser) open(url, scheme string) {
	b.t.Helper()
	b.call("POST", b.session+"/goog/cdp/execute", map[string]any{"cmd": "Emulation.setEmulatedMedia",
		"params": map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}}}, nil)
	b.call("POST", b.session+"/url", map[string]string{"url": url}, nil)
}

// run runs a function's body in the page, and reads what it returns.
func (b *browser) run(value any, script string, args ...any) {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	b.call("POST", b.session+"/execute/sync", map[string]any{"script": script, "args": args}, value)
}

// wait runs a script in the page until it returns true.
func (b *browser) wait(what, script string) {
	b.t.Helper()
	var ok bool
	b.call("POST", b.session+"/timeouts", map[string]int64{"script": browserTime.Milliseconds()}, nil)
	b.call("POST", b.session+"/execute/async", map[string]any{"args": []any{pageTime.Milliseconds()}, "script": `
		const [most, done] = arguments, started = Date.now();
		const test = () => { ` + script + ` };
		const look = () => test() ? done(true) : Date.now() - started > most ? done(false) : setTimeout(look, 50);
		look();`}, &ok)
	if !ok {
		b.t.Fatalf("the page never had %s", what)
	}
}

// press presses a key and lets it go.
func (b *browser) press(key string) {
	b.t.Helper()
	actions := []any{map[string]string{"type": "keyDown", "value": key}, map[string]string{"type": "keyUp", "value": key}}
	b.call("POST", b.session+"/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keys", "actions": actions}}}, nil)
}

// The keys by their WebDriver names.
const keyTab, keyRight, keyEnd = "\ue004", "\ue014", "\ue010"

// complaints are what the page has written to its console.
func (b *browser) complaints() (all []string) {
	b.t.Helper()
	var entries []struct{ Level, Message string }
	b.call("POST", b.session+"/se/log", map[string]string{"type": "browser"}, &entries)
	for _, e := range entries {
		all = append(all, e.Level+": "+e.Message)
	}
	return all
}

// picture is a PNG of the page.
func (b *browser) picture() []byte {
	b.t.Helper()
	var text string
	b.call("GET", b.session+"/screenshot", nil, &text)
	p, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}
