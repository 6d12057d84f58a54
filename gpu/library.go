package gpu

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// A library is one that was found and opened, with the functions that are called.
// It stays open for as long as the process does.
type library struct {
	name      string // "cuda" or "nccl", for errors
	path      string // under which it was found
	functions map[string]uintptr
	describe  func(e *Error) // fills in a code's name and text
}

// load opens the first candidate that can be opened and has the functions that are
// required. What it tried before is in the error.
func load(name string, candidates, required, optional []string) (*library, error) {
	var tried []string
	for _, path := range candidates {
		l, err := link(name, path, required, optional)
		if err == nil {
			return l, nil
		}
		tried = append(tried, err.Error())
	}
	return nil, fmt.Errorf("%w: no library of %s:\n\t%s", ErrUnavailable, name, strings.Join(tried, "\n\t"))
}

// link opens one candidate.
func link(name, path string, required, optional []string) (*library, error) {
	handle, err := open(path)
	if err != nil {
		return nil, firstLine(path, err)
	}
	l := &library{name: name, path: path, functions: make(map[string]uintptr)}
	for _, f := range required {
		if l.functions[f], err = symbol(handle, f); err != nil {
			return nil, fmt.Errorf("%s has no %s", path, f)
		}
	}
	for _, f := range optional {
		if address, err := symbol(handle, f); err == nil {
			l.functions[f] = address
		}
	}
	return l, nil
}

// firstLine is an error of the loader, which need not name the path.
func firstLine(path string, err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if !strings.Contains(text, path) {
		text = path + ": " + text
	}
	return errors.New(text)
}

func (l *library) has(f string) bool { return l.functions[f] != 0 }

// call calls a function that returns a code, 0 where all is well. Pointers are
// converted in the argument list, uintptr(unsafe.Pointer(p)), which keeps what they
// point to alive and in place.
//
//go:uintptrescapes
func (l *library) call(f string, args ...uintptr) error {
	address := l.functions[f]
	if address == 0 {
		return &Error{Library: l.name, Call: f, Code: noFunction, Text: "no such function in " + l.path}
	}
	return l.check(f, int32(invoke(address, args...)))
}

// check makes an error of a code.
func (l *library) check(f string, code int32) error {
	if code == 0 {
		return nil
	}
	e := &Error{Library: l.name, Call: f, Code: int(code)}
	l.describe(e)
	return e
}

// longest bounds a text of a library.
const longest = 4096

// text is a C string, "" for none.
func text(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	n := 0
	for n < longest && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
