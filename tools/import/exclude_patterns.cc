#include "tools/import/exclude_patterns.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>

namespace siltfs {
namespace {

bool MatchesPlain(const std::string& pattern, const std::string& subject) {
  return fnmatch(pattern.c_str(), subject.c_str(), FNM_PATHNAME) == 0;
}

// Returns the earliest end of a place that the text matches and that begins from `first` to `last`;
// nullopt if there is none.
std::optional<size_t> EarliestEnd(const std::string& text, const std::string& subject, size_t first,
                                  size_t last) {
  for (size_t end = first; end <= subject.size(); ++end) {
    for (size_t begin = first; begin <= std::min(last, end); ++begin) {
      if (MatchesPlain(text, subject.substr(begin, end - begin))) return end;
    }
  }
  return std::nullopt;
}

// Whether the text of a pattern, with "**" for any text with slashes, matches the whole subject.
// fnmatch matches the parts between the "**". As "**" matches anything, only the earliest end of a
// part counts for the parts that follow.
bool MatchesText(const std::string& pattern, const std::string& subject) {
  size_t stars = pattern.find("**");
  if (stars == std::string::npos) return MatchesPlain(pattern, subject);
  // The first part begins where the subject begins; later parts begin anywhere after `least`.
  size_t least = 0;
  size_t last_begin = 0;
  for (size_t part = 0; stars != std::string::npos; stars = pattern.find("**", part)) {
    const std::string text = pattern.substr(part, stars - part);
    const auto end = EarliestEnd(text, subject, least, last_begin);
    if (!end) return false;
    least = *end;
    last_begin = subject.size();
    part = stars + 2;
  }
  const std::string rest = pattern.substr(pattern.rfind("**") + 2);
  for (size_t begin = least; begin <= subject.size(); ++begin) {
    if (MatchesPlain(rest, subject.substr(begin))) return true;
  }
  return false;
}

}  // namespace

ExcludePatterns::ExcludePatterns(const std::vector<std::string>& patterns) {
  for (std::string text : patterns) {
    Pattern pattern;
    if (text.size() > 1 && text.ends_with('/')) {
      pattern.directories_only = true;
      text.pop_back();
    }
    pattern.whole_path = text.find('/') != std::string::npos;
    if (text.starts_with('/')) text.erase(0, 1);
    pattern.text = std::move(text);
    patterns_.push_back(std::move(pattern));
  }
}

bool ExcludePatterns::Matches(const std::string& path, bool directory) const {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  for (const Pattern& pattern : patterns_) {
    if (pattern.directories_only && !directory) continue;
    const std::string& subject = pattern.whole_path ? path : name;
    if (MatchesText(pattern.text, subject)) return true;
  }
  return false;
}

}  // namespace siltfs
