// A whole directory as a value: to restore parts of a store, and to see whether anything changed.
#pragma once

#include <map>
#include <string>

namespace siltfs::testing {

// Path below the directory -> content of the file; directories end in "/" and have none.
using DirectoryTree = std::map<std::string, std::string>;

DirectoryTree ReadTree(const std::string& directory);
// Makes the directory hold exactly this tree.
void WriteTree(const std::string& directory, const DirectoryTree& tree);

std::string ReadText(const std::string& path);
void WriteText(const std::string& path, const std::string& text);

}  // namespace siltfs::testing
