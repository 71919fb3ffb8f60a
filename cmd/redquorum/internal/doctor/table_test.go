package doctor

import (
	"strings"
	"testing"
	"time"
)

// Everything is in the table; what several nodes share is said once, the worst first, with what it means and the fix.
func TestReportReads(t *testing.T) {
	all := healthy(3)
	for i := range all {
		all[i].settings = map[string]string{"save": ""}
	}
	all[0].record.Quarantine, all[2].record.Quarantine = time.Second, time.Second
	all[1].info["role"] = "slave"
	var b strings.Builder
	r := judge(defaults(), all)
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	last := -1
	for _, part := range []string{
		"RESULT   CHECK          NODE           FOUND\n",
		"\nok       number         -              3 nodes",
		"\nok       role           10.0.0.1:6379  master\n",
		"\nok       role           10.0.0.3:6379  master\n",
		"\nproblem  role           10.0.0.2:6379  a replica\n",
		"\nnote     persistence    all            nothing is written to disk\n",
		"\nwarning  restart guard  10.0.0.1:6379  in quarantine, for 1s\n",
		"\n\nproblem: role of 10.0.0.2:6379\n  found  a replica\n  means  A lock",
		"\n  fix    Name its master",
		"\n\nwarning: restart guard of 10.0.0.1:6379, 10.0.0.3:6379\n",
		"\n\nnote: persistence of 10.0.0.1:6379, 10.0.0.2:6379, 10.0.0.3:6379\n",
		"\n\n1 of 3 nodes vote, and a quorum is 2; 1 problem, 1 warning, 1 note.\n",
	} {
		at := strings.Index(text, part)
		if at < last {
			t.Fatalf("%q is missing, or not where it belongs, in:\n%s", part, text)
		}
		last = at
	}
	_, advice, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(advice) {
		if len(line) > width+1 {
			t.Errorf("%d characters in %q", len(line), line)
		}
	}
	if n := strings.Count(text, "in quarantine"); n != 3 { // twice in the table
		t.Errorf("said %d times:\n%s", n, text)
	}
}

func TestReportOfWhatIsWell(t *testing.T) {
	var b strings.Builder
	if err := judge(defaults(), healthy(3)).Write(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(b.String(), "\n\n3 of 3 nodes vote, and a quorum is 2; all is well.\n") || strings.Contains(b.String(), "fix") {
		t.Errorf("got\n%s", b.String())
	}
}
