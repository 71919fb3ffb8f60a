package stock

import (
	"sync"
	"testing"
)

var ann, bob = Visitor{1, 1}, Visitor{2, 1}

func look(t *testing.T, s *Stock, who Visitor, token int64, want int) {
	t.Helper()
	if got, ok := s.Look(who, token); !ok || got != want {
		t.Fatalf("%v looked and got %d, %v; want %d", who, got, ok, want)
	}
}

func sell(t *testing.T, s *Stock, who Visitor, token int64, item int) {
	t.Helper()
	if !s.Sell(who, token, item) {
		t.Fatalf("%v was refused item %d", who, item)
	}
}

func TestSoldOneByOneIsExact(t *testing.T) {
	s := New(3)
	for token := int64(1); token <= 3; token++ {
		item := 4 - int(token)
		look(t, s, ann, token, item)
		sell(t, s, ann, token, item)
	}
	look(t, s, ann, 4, 0)
	want := Tally{Initial: 3, Sold: 3, Visits: 4}
	if got := s.Tally(); got != want || got.Exact() != nil || got.Oversold() != 0 {
		t.Errorf("got %+v, %v; want %+v", got, got.Exact(), want)
	}
	if who := s.Inside(); who != nil {
		t.Errorf("%v inside of a stock that is sold out", who)
	}
}

func TestTwoThatLookBeforeOneSellsSellTheSameItem(t *testing.T) {
	s := New(1)
	look(t, s, ann, 0, 1)
	look(t, s, bob, 0, 1)
	if who := s.Inside(); len(who) != 2 || who[0] != ann || who[1] != bob {
		t.Errorf("inside: %v", who)
	}
	sell(t, s, ann, 0, 1)
	sell(t, s, bob, 0, 1)
	want := Tally{Initial: 1, Sold: 2, Twice: 1, Together: 1, Visits: 2}
	if got := s.Tally(); got != want || got.Oversold() != 1 || got.Exact() == nil {
		t.Errorf("got %+v, %v; want %+v", got, got.Exact(), want)
	}
}

// A write from a stale look puts the number up again: items that are sold already go once more.
func TestALateWritePutsTheNumberUpAgain(t *testing.T) {
	s := New(3)
	look(t, s, ann, 0, 3)
	look(t, s, bob, 0, 3)
	sell(t, s, bob, 0, 3)
	look(t, s, bob, 0, 2)
	sell(t, s, bob, 0, 2)
	sell(t, s, ann, 0, 3)
	look(t, s, bob, 0, 2)
	sell(t, s, bob, 0, 2)
	if got := s.Tally(); got.Sold != 4 || got.Twice != 2 || got.Left != 1 || got.Oversold() != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestALowerTokenIsRefusedAndWritesNothing(t *testing.T) {
	s := New(2)
	look(t, s, ann, 7, 2)
	look(t, s, bob, 8, 2)
	if s.Sell(ann, 7, 2) {
		t.Error("a sale below the fence went through")
	}
	if _, ok := s.Look(ann, 7); ok {
		t.Error("a look below the fence went through")
	}
	sell(t, s, bob, 8, 2) // a holder comes twice with one token
	got := s.Tally()
	if got.Refused != 2 || got.Sold != 1 || got.Left != 1 || got.Twice != 0 {
		t.Errorf("got %+v", got)
	}
	// The fence has saved the stock. It has not made the lock exclusive, and that is told.
	if got.Together != 1 || got.Exact() == nil {
		t.Errorf("ann sold while bob was inside, and nobody noticed: %+v", got)
	}
}

func TestWhoLeavesHasNotBeenTogetherWithAnybody(t *testing.T) {
	s := New(1)
	look(t, s, ann, 1, 1)
	look(t, s, bob, 2, 1) // ann's lease is over, and she is about to notice
	s.Leave(ann)
	s.Leave(ann)
	sell(t, s, bob, 2, 1)
	if got := s.Tally(); got.Exact() != nil || got.Abandoned != 1 {
		t.Errorf("got %+v, %v", got, got.Exact())
	}
}

func TestAProcessThatEndsLeaves(t *testing.T) {
	s := New(5)
	look(t, s, ann, 0, 5)
	look(t, s, Visitor{1, 2}, 0, 5)
	look(t, s, bob, 0, 5)
	s.Gone(1)
	if who := s.Inside(); len(who) != 1 || who[0] != bob {
		t.Errorf("inside: %v", who)
	}
}

func TestTwoLeasesWithOneTokenAreNoticed(t *testing.T) {
	s := New(2)
	for item := 2; item > 0; item-- {
		look(t, s, ann, 5, item)
		sell(t, s, ann, 5, item)
	}
	if got := s.Tally(); got.Regressed != 1 || got.Exact() == nil {
		t.Errorf("got %+v", got)
	}
}

func TestUnsoldIsNotExact(t *testing.T) {
	s := New(2)
	look(t, s, ann, 1, 2)
	sell(t, s, ann, 1, 2)
	if s.Tally().Exact() == nil {
		t.Error("a stock with an item left is called exact")
	}
}

func TestReachedClosesAtTheOrder(t *testing.T) {
	s := New(3)
	two := s.Reached(2)
	for item := 3; item > 0; item-- {
		select {
		case <-two:
			if sold := s.Tally().Sold; sold < 2 {
				t.Fatalf("closed at %d orders", sold)
			}
		default:
			if sold := s.Tally().Sold; sold >= 2 {
				t.Fatalf("open at %d orders", sold)
			}
		}
		sell(t, s, ann, 0, item)
	}
	<-s.Reached(3) // also when it comes afterwards
}

func TestStockIsSafeForConcurrentUse(t *testing.T) {
	s := New(1000)
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			who := Visitor{n, 1}
			for {
				item, _ := s.Look(who, 0)
				if item == 0 {
					return
				}
				s.Inside()
				s.Sell(who, 0, item)
			}
		})
	}
	workers.Wait()
	got := s.Tally()
	if got.Sold < 1000 || got.Sold-got.Twice != 1000 || got.Left < 0 {
		t.Errorf("got %+v", got)
	}
}
