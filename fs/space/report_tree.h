// The places for which the space below some paths is reported: the paths, and directories below
// them. Place 0 stands for all paths together and is above the paths. Each file and each chunk has
// a set of places, and it counts for these places and for all places above them, once for each.
//
// Thread-safety: as for a plain value. Memory: 8 bytes for each place. Cost of LowestCommon: the
// number of levels between the places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace siltfs {

class ReportTree {
 public:
  using Place = uint32_t;
  static constexpr size_t kMostPlaces = 65'536;

  size_t size() const { return places_.size(); }
  bool IsFull() const { return size() >= kMostPlaces; }
  Place parent(Place place) const { return places_[place].parent; }

  // Adds a place below another one. Depth first: a place gets all places below it before the next
  // place on its own level is added.
  Place Add(Place parent) {
    places_.push_back({parent, places_[parent].depth + 1});
    return static_cast<Place>(places_.size() - 1);
  }
  // The lowest place that is both of them, or above them.
  Place LowestCommon(Place a, Place b) const {
    while (a != b) {
      Place& lower = places_[a].depth >= places_[b].depth ? a : b;
      lower = places_[lower].parent;
    }
    return a;
  }

  // Amounts of something, for each place and all places below it.
  class Sums {
   public:
    explicit Sums(size_t places) : amounts_(places) {}
    // Counts for the place and those above it.
    void Add(Place place, uint64_t amount) { amounts_[place] += amount; }
    // Counts once for each place that is, or is above, one of these, which ascend.
    void AddOnce(const ReportTree& tree, std::span<const Place> places, uint64_t amount) {
      for (size_t i = 0; i < places.size(); ++i) {
        amounts_[places[i]] += amount;
        // Both of them add to their common places above. The numbers wrap around meanwhile.
        if (i > 0) amounts_[tree.LowestCommon(places[i - 1], places[i])] -= amount;
      }
    }
    // Call it after all additions.
    void Finish(const ReportTree& tree) {
      for (size_t place = amounts_.size(); place-- > 1;)
        amounts_[tree.parent(static_cast<Place>(place))] += amounts_[place];
    }
    uint64_t At(Place place) const { return amounts_[place]; }

   private:
    std::vector<uint64_t> amounts_;
  };

 private:
  struct Node {
    Place parent = 0;
    uint32_t depth = 0;
  };
  std::vector<Node> places_{Node{}};
};

}  // namespace siltfs
