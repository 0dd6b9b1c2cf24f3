// Runs a fuzz target without an engine: every regular file in the folders of the given paths once, then a fixed
// number of seeded mutations of each, so that the target and its corpus are exercised in every test run.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<uint8_t> read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Overwrites, inserts, erases or truncates at random places.
void mutate(std::vector<uint8_t>& bytes, std::mt19937_64& rng) {
    const int n_changes = 1 + static_cast<int>(rng() % 8);
    for (int i = 0; i < n_changes; ++i) {
        const size_t at = bytes.empty() ? 0 : rng() % bytes.size();
        switch (rng() % 5) {
            case 0: if (!bytes.empty()) bytes[at] = static_cast<uint8_t>(rng()); break;
            case 1: if (!bytes.empty()) bytes[at] ^= static_cast<uint8_t>(1u << (rng() % 8)); break;
            case 2: bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<uint8_t>(rng())); break;
            case 3: if (!bytes.empty()) bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at)); break;
            case 4: if (rng() % 8 == 0) bytes.resize(at); break;
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const char* setting = std::getenv("HEARTH_FUZZ_MUTATIONS");
    const int mutations = setting ? std::atoi(setting) : 300;
    size_t files = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(argv[i]).parent_path())) {
            if (!entry.is_regular_file()) continue;
            const std::vector<uint8_t> seed = read_file(entry.path());
            LLVMFuzzerTestOneInput(seed.data(), seed.size());
            std::mt19937_64 rng(seed.size() + files);
            for (int m = 0; m < mutations; ++m) {
                std::vector<uint8_t> bytes = seed;
                mutate(bytes, rng);
                LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
            }
            ++files;
        }
    }
    std::printf("replayed %zu files, %d mutations each\n", files, mutations);
    return files == 0;
}
