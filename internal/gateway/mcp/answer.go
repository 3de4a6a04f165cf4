package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxAnswer bounds the text of a result: some 25,000 tokens, which is what clients take from a tool.
const MaxAnswer = 96 << 10

// Answer is what a route answers. Its body is closed by who reads it.
type Answer struct {
	Code int
	// Media is the content type.
	Media string
	Body  io.ReadCloser
}

// page is as much of an answer as a result may have.
type page struct {
	code  int
	lines bool // a value a line
	text  []byte
	// more: the answer goes on.
	more bool
}

// page reads the beginning of an answer, and leaves the rest.
func (a *Answer) page() (*page, error) {
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(a.Body, MaxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("the answer was cut off: %w", err)
	}
	p := &page{code: a.Code, text: text, lines: strings.Contains(a.Media, "ndjson")}
	if len(text) > MaxAnswer {
		p.text, p.more = text[:MaxAnswer], true
	}
	return p, nil
}

// result is an answer as that of a call. noted says what was left out; empty: nothing.
func (t *tool) result(p *page, noted string) *sdk.CallToolResult {
	if p.code/100 != 2 {
		return failed(errors.New(p.refusal()))
	}
	text := p.text
	if p.more {
		end := bytes.LastIndexByte(text, '\n') + 1
		if !p.lines || end == 0 {
			return failed(fmt.Errorf("the answer has more than %d KiB, and none of it is shown: narrow it by %s", MaxAnswer>>10, t.narrowing()))
		}
		text = text[:end]
		noted = fmt.Sprintf("these are the first %d lines, %d KiB: the rest was left out; narrow it by %s", bytes.Count(text, []byte("\n")), len(text)>>10, t.narrowing())
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("nothing: the answer is empty")
	}
	out := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(bytes.ToValidUTF8(text, []byte("\uFFFD")))}}}
	if noted != "" {
		out.Content = append(out.Content, &sdk.TextContent{Text: noted})
	}
	return out
}

// refusal is what an answer says of why, with what to do.
func (p *page) refusal() string {
	var own struct {
		Error json.RawMessage `json:"error"`
	}
	var why struct{ Code, Message, Hint string }
	text := strings.TrimSpace(string(bytes.ToValidUTF8(p.text, []byte("\uFFFD"))))
	if json.Unmarshal(p.text, &own) == nil && len(own.Error) > 0 {
		if json.Unmarshal(own.Error, &why) == nil && why.Message != "" {
			if text = why.Message; why.Hint != "" {
				text += ": " + why.Hint
			}
		} else if s := ""; json.Unmarshal(own.Error, &s) == nil { // as Prometheus has it
			text = s
		}
	}
	if text == "" {
		text = http.StatusText(p.code)
	}
	return strconv.Itoa(p.code) + ": " + text
}

// failed is the result of a call that was not answered.
func failed(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}
}
