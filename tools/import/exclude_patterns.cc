#include "tools/import/exclude_patterns.h"

#include <fnmatch.h>

namespace siltfs {
namespace {

bool MatchesPlain(const std::string& pattern, const std::string& subject) {
  return fnmatch(pattern.c_str(), subject.c_str(), FNM_PATHNAME) == 0;
}

// "**" matches any text, with slashes; fnmatch knows only the rest of a pattern.
bool MatchesText(const std::string& pattern, const std::string& subject) {
  const size_t stars = pattern.find("**");
  if (stars == std::string::npos) return MatchesPlain(pattern, subject);
  const std::string front = pattern.substr(0, stars);
  const std::string rest = pattern.substr(stars + 2);
  for (size_t begin = 0; begin <= subject.size(); ++begin) {
    if (!MatchesPlain(front, subject.substr(0, begin))) continue;
    for (size_t end = begin; end <= subject.size(); ++end) {
      if (MatchesText(rest, subject.substr(end))) return true;
    }
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
