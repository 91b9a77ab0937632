// Keeps files in a store of chunks, each cut where its content decides:
//
//   example put STORE FILE       makes STORE if it is missing, and prints the chunks of FILE
//   example get STORE <CHUNKS    writes the bytes of these chunks
//
// With pkg-config: g++ -std=c++20 main.cc $(pkg-config --cflags --libs siltfs) -o example
#include <siltfs/chunks.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

namespace chunks = siltfs::chunks;

namespace {

void Check(const chunks::Error& error) {
  if (!error) return;
  std::cerr << "example: " << error.message() << '\n';
  std::exit(1);
}

std::unique_ptr<chunks::Store> Open(const std::string& directory, bool make) {
  std::unique_ptr<chunks::Store> store;
  chunks::Error error = chunks::Store::Open(directory, store);
  if (make && error.code() == chunks::ErrorCode::kNotFound) {
    Check(chunks::Store::Make(directory));
    error = chunks::Store::Open(directory, store);
  }
  Check(error);
  return store;
}

void Put(const std::string& directory, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Check({chunks::ErrorCode::kNotFound, path + ": cannot be opened"});
  const std::vector<uint8_t> content{std::istreambuf_iterator<char>(file), {}};

  const auto store = Open(directory, /*make=*/true);
  std::vector<std::span<const uint8_t>> pieces;
  std::span<const uint8_t> rest = content;
  for (const uint32_t length : store->Cut(content)) {
    pieces.push_back(rest.first(length));
    rest = rest.subspan(length);
  }
  std::vector<chunks::Name> names(pieces.size());
  Check(store->Put(pieces, names));
  Check(store->Close());  // the chunks are durable
  for (const chunks::Name& name : names) std::cout << name.ToHex() << ' ' << name.length << '\n';
}

chunks::Name ParseName(const std::string& line) {
  chunks::Name name;
  std::istringstream words(line);
  std::string hex;
  if (!(words >> hex >> name.length) || hex.size() != 2 * name.digest.size() ||
      hex.find_first_not_of("0123456789abcdef") != hex.npos)
    Check({chunks::ErrorCode::kInvalidArgument, "\"" + line + "\" is not a chunk"});
  for (size_t i = 0; i < name.digest.size(); ++i)
    name.digest[i] = static_cast<uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  return name;
}

void Get(const std::string& directory) {
  const auto store = Open(directory, /*make=*/false);
  std::vector<uint8_t> bytes;
  for (std::string line; std::getline(std::cin, line);) {
    Check(store->Get(ParseName(line), bytes));
    std::cout.write(reinterpret_cast<const char*>(bytes.data()),
                    static_cast<std::streamsize>(bytes.size()));
  }
  Check(store->Close());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "put" && argc == 4) {
    Put(argv[2], argv[3]);
  } else if (command == "get" && argc == 3) {
    Get(argv[2]);
  } else {
    std::cerr << "usage: example put STORE FILE | example get STORE <CHUNKS\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
