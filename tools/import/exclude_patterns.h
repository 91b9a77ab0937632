// The patterns of --exclude.
//
// A pattern without a slash, except for one at its end, matches the last name of a path at any
// depth. Another pattern matches the whole path below the source, without a leading slash. A slash
// at the end makes the pattern match directories only. "*", "?" and "[...]" are as in the shell and
// match no slash; "**" matches slashes, too. An excluded directory is left out with all that is
// below it.
//
// Thread-safety: const functions from any thread. No errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace siltfs {

class ExcludePatterns {
 public:
  explicit ExcludePatterns(const std::vector<std::string>& patterns);

  bool empty() const { return patterns_.empty(); }
  // `path`: below the source, without a leading slash.
  bool Matches(const std::string& path, bool directory) const;

 private:
  struct Pattern {
    std::string text;
    bool whole_path = false;
    bool directories_only = false;
  };
  std::vector<Pattern> patterns_;
};

}  // namespace siltfs
