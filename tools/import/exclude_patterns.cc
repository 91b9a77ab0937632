#include "tools/import/exclude_patterns.h"

#include <fnmatch.h>

namespace siltfs {

ExcludePatterns::ExcludePatterns(const std::vector<std::string>& patterns) {
  for (std::string text : patterns) {
    Pattern pattern;
    if (text.size() > 1 && text.ends_with('/')) {
      pattern.directories_only = true;
      text.pop_back();
    }
    pattern.whole_path = text.find('/') != std::string::npos;
    if (text.starts_with('/')) text.erase(0, 1);
    pattern.crosses_slashes = text.find("**") != std::string::npos;
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
    const int flags = pattern.crosses_slashes ? 0 : FNM_PATHNAME;
    if (fnmatch(pattern.text.c_str(), subject.c_str(), flags) == 0) return true;
  }
  return false;
}

}  // namespace siltfs
