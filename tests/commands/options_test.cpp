// The option table: each flag by name, letter and environment; bounds; what is refused and how.
#include "options.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace {

using options::Command;

std::map<std::string, std::string>& environment() {
    static std::map<std::string, std::string> values;
    return values;
}

const char* look_up(const char* name) {
    const auto it = environment().find(name);
    return it == environment().end() ? nullptr : it->second.c_str();
}

base::Result<options::Parsed> parse(std::vector<const char*> arguments) { return options::parse(arguments, look_up); }

options::Parsed parsed(std::vector<const char*> arguments) {
    auto result = parse(std::move(arguments));
    EXPECT_TRUE(result.ok()) << (result ? "" : result.error().message);
    return result ? std::move(result).value() : options::Parsed{};
}

std::string refusal(std::vector<const char*> arguments) {
    auto result = parse(std::move(arguments));
    EXPECT_FALSE(result.ok());
    return result ? "" : result.error().message;
}

class Options : public testing::Test {
  protected:
    void SetUp() override { environment().clear(); }
};

TEST_F(Options, NoArgumentsIsNoCommand) { EXPECT_EQ(parsed({}).command, Command::none); }

TEST_F(Options, DefaultsOfServe) {
    const auto p = parsed({"serve", "m.gguf"});
    EXPECT_EQ(p.command, Command::serve);
    EXPECT_EQ(p.serve.model_path, "m.gguf");
    EXPECT_EQ(p.serve.host, "127.0.0.1");
    EXPECT_EQ(p.serve.port, 8080);
    EXPECT_EQ(p.serve.max_queue, 64u);
    EXPECT_EQ(p.serve.default_max_tokens, 2048u);
    EXPECT_EQ(p.serve.kv_budget, "auto");
    EXPECT_EQ(p.serve.kv_type, "f16");
}

TEST_F(Options, Quantize) {
    const auto p = parsed({"quantize", "in.gguf", "out.gguf", "Q4_K_M", "--imatrix", "i.gguf", "-t", "3", "--allow-requantize"});
    EXPECT_EQ(p.command, Command::quantize);
    EXPECT_EQ(p.quantize.in, "in.gguf");
    EXPECT_EQ(p.quantize.out, "out.gguf");
    EXPECT_EQ(p.quantize.type, "Q4_K_M");
    EXPECT_EQ(p.quantize.importance, "i.gguf");
    EXPECT_EQ(p.quantize.threads, 3u);
    EXPECT_TRUE(p.quantize.allow_requantize);
    EXPECT_FALSE(parsed({"quantize", "a", "b", "Q8_0"}).quantize.allow_requantize);
    EXPECT_NE(refusal({"quantize", "in.gguf", "out.gguf"}).find("three operands"), std::string::npos);
    EXPECT_NE(refusal({"quantize", "a", "b", "Q8_0", "c"}).find("three operands"), std::string::npos);
    EXPECT_NE(refusal({"quantize", "a", "b", "Q8_0", "--port", "1"}).find("--port"), std::string::npos);
    EXPECT_NE(refusal({"serve", "m", "--imatrix", "x"}).find("--imatrix"), std::string::npos);
}

TEST_F(Options, AFlagInEachSpelling) {
    EXPECT_EQ(parsed({"serve", "m", "--port", "81"}).serve.port, 81);
    EXPECT_EQ(parsed({"serve", "m", "--port=82"}).serve.port, 82);
    EXPECT_EQ(parsed({"serve", "m", "-p", "83"}).serve.port, 83);
    EXPECT_EQ(parsed({"serve", "m", "-p84"}).serve.port, 84);
    EXPECT_EQ(parsed({"serve", "--port", "85", "m"}).serve.model_path, "m");
    EXPECT_EQ(parsed({"serve", "--", "--odd.gguf"}).serve.model_path, "--odd.gguf");
}

TEST_F(Options, EnvironmentBelowFlags) {
    environment()["HEARTH_PORT"] = "90";
    environment()["HEARTH_INSECURE"] = "true";
    EXPECT_EQ(parsed({"serve", "m"}).serve.port, 90);
    EXPECT_TRUE(parsed({"serve", "m"}).serve.insecure);
    EXPECT_EQ(parsed({"serve", "m", "--port", "91"}).serve.port, 91);
    environment()["HEARTH_PORT"] = "";
    EXPECT_EQ(parsed({"serve", "m"}).serve.port, 8080);
    environment()["HEARTH_PORT"] = "x";
    EXPECT_EQ(refusal({"serve", "m"}), "HEARTH_PORT: \"x\" is not allowed; expected a number from 0 to 65535");
}

TEST_F(Options, AnOptionOfAnotherCommandIsNotReadFromTheEnvironment) {
    environment()["HEARTH_PORT"] = "nonsense";
    EXPECT_EQ(parsed({"run", "m"}).command, Command::run);
}

TEST_F(Options, BytesWithSuffix) {
    EXPECT_EQ(parsed({"serve", "m", "--max-body", "1000"}).serve.max_body, 1000u);
    EXPECT_EQ(parsed({"serve", "m", "--max-body", "2K"}).serve.max_body, 2048u);
    EXPECT_EQ(parsed({"serve", "m", "--max-body", "3m"}).serve.max_body, 3u << 20);
    EXPECT_EQ(parsed({"serve", "m", "--kv-budget", "1G"}).serve.kv_budget, "1G");
    for (const char* bad : {"", "K", "-1", "1T", "0", "1.5G", "4097G", "99999999999999999999", "1 G", "0x10"}) {
        EXPECT_NE(refusal({"serve", "m", "--max-body", bad}).find("bytes, with K, M or G"), std::string::npos) << bad;
        EXPECT_NE(refusal({"serve", "m", "--kv-budget", bad}).find("auto, or bytes"), std::string::npos) << bad;
    }
}

TEST_F(Options, NumbersOutOfBounds) {
    EXPECT_EQ(refusal({"serve", "m", "--port", "65536"}), "--port: \"65536\" is not allowed; expected a number from 0 to 65535");
    EXPECT_EQ(refusal({"serve", "m", "-p", "-1"}), "-p: \"-1\" is not allowed; expected a number from 0 to 65535");
    EXPECT_NE(refusal({"serve", "m", "--threads", "257"}).find("0 to 256"), std::string::npos);
    EXPECT_NE(refusal({"serve", "m", "--default-max-tokens", "0"}).find("from 1"), std::string::npos);
    EXPECT_NE(refusal({"run", "m", "--temperature", "nan"}).find("from 0.0 to 100.0"), std::string::npos);
    EXPECT_NE(refusal({"run", "m", "--temperature", "-0.1"}).find("from 0.0 to 100.0"), std::string::npos);
    EXPECT_NE(refusal({"run", "m", "--top-p", "0"}).find("from 0.001 to 1.0"), std::string::npos);
    EXPECT_EQ(parsed({"run", "m", "--temperature", "0"}).run.temperature, 0.0f);
    EXPECT_EQ(*parsed({"run", "m", "--seed", "18446744073709551615"}).run.seed, 18446744073709551615u);
    EXPECT_FALSE(parsed({"run", "m"}).run.seed.has_value());
}

TEST_F(Options, Lists) {
    const auto p = parsed({"serve", "m", "--allow-host", "a.example,b.example", "--allow-host", ",c,"});
    EXPECT_EQ(p.serve.hosts, (std::vector<std::string>{"a.example", "b.example", "c"}));
}

// RFC 9110 (Host), RFC 6454 (Origin): what a client can never send is no use in a list of what is let in.
TEST_F(Options, NamesThatNothingCanMatch) {
    for (const char* good : {"*", "localhost", "box.local:8080", "[::1]:80", "::5", "10.0.0.7"})
        EXPECT_EQ(parsed({"serve", "m", "--allow-host", good}).serve.hosts, std::vector<std::string>{good});
    for (const char* bad : {"http://x/", "a b", "x/y", "chat.example:port"})
        EXPECT_NE(refusal({"serve", "m", "--allow-host", bad}).find("--allow-host"), std::string::npos) << bad;
    for (const char* good : {"*", "https://app.example", "http://localhost:3000/", "vscode-webview://abc"})
        EXPECT_EQ(parsed({"serve", "m", "--cors-origin", good}).serve.cors_origins, std::vector<std::string>{good});
    for (const char* bad : {"nonsense", "https://a.example/path", "https://", "://x", "null", "localhost:3000"})
        EXPECT_NE(refusal({"serve", "m", "--cors-origin", bad}).find("--cors-origin"), std::string::npos) << bad;
    for (const char* bad : {"example.com", "", "127.0.0.1:80", "300.1.1.1"})
        EXPECT_NE(refusal({"serve", "m", "--host", bad}).find("--host"), std::string::npos) << bad;
    for (const char* bad : {"", "a\tb", "\xff"}) EXPECT_NE(refusal({"serve", "m", "--alias", bad}).find("--alias"), std::string::npos) << bad;
}

TEST_F(Options, AListFromTheEnvironmentIsReplacedByFlags) {
    environment()["HEARTH_CORS_ORIGIN"] = "http://a,http://b";
    EXPECT_EQ(parsed({"serve", "m"}).serve.cors_origins, (std::vector<std::string>{"http://a", "http://b"}));
    EXPECT_EQ(parsed({"serve", "m", "--cors-origin", "http://c", "--cors-origin", "http://d"}).serve.cors_origins, (std::vector<std::string>{"http://c", "http://d"}));
    environment()["HEARTH_PROMPT"] = "from the environment";
    EXPECT_EQ(parsed({"run", "m"}).run.prompt, "from the environment");
    EXPECT_EQ(parsed({"run", "m", "from", "words"}).run.prompt, "from words");
}

TEST_F(Options, Switches) {
    EXPECT_FALSE(parsed({"serve", "m", "--no-prefix-cache"}).serve.prefix_cache);
    EXPECT_TRUE(parsed({"serve", "m", "--no-prefix-cache=0"}).serve.prefix_cache);
    EXPECT_NE(refusal({"serve", "m", "--quiet=maybe"}).find("1 or 0"), std::string::npos);
}

TEST_F(Options, PromptOfRun) {
    EXPECT_EQ(parsed({"run", "m", "What", "is it?"}).run.prompt, "What is it?");
    EXPECT_EQ(parsed({"run", "m", "--prompt", "x"}).run.prompt, "x");
}

TEST_F(Options, Refusals) {
    EXPECT_NE(refusal({"sevre"}).find("\"sevre\" is not a command; expected one of serve, run"), std::string::npos);
    EXPECT_NE(refusal({"serve"}).find("needs a model file"), std::string::npos);
    EXPECT_NE(refusal({"serve", "a", "b"}).find("one operand too many"), std::string::npos);
    EXPECT_NE(refusal({"serve", "m", "--prot", "1"}).find("--prot is not an option of hearth serve"), std::string::npos);
    EXPECT_NE(refusal({"serve", "m", "--temperature", "1"}).find("is not an option of hearth serve"), std::string::npos);
    EXPECT_NE(refusal({"serve", "m", "--port"}).find("--port needs a value (N)"), std::string::npos);
    EXPECT_NE(refusal({"serve", "m", "-Z"}).find("-Z is not an option"), std::string::npos);
    EXPECT_NE(refusal({"serve", "m", "--kv-type", "q4"}).find("f16 or f32"), std::string::npos);
    EXPECT_NE(refusal({"serve", "m", "--isa", "sse"}).find("scalar, avx2 or avx512"), std::string::npos);
    // Control characters of the command line don't reach the terminal.
    EXPECT_EQ(refusal({"se\x1b[2Jrve"}).find('\x1b'), std::string::npos);
}

TEST_F(Options, Help) {
    EXPECT_EQ(parsed({"--help"}).command, Command::help);
    EXPECT_EQ(parsed({"serve", "--help"}).help_of, Command::serve);
    EXPECT_EQ(parsed({"help", "run"}).help_of, Command::run);
    EXPECT_NE(refusal({"help", "walk"}).find("not a command"), std::string::npos);
    EXPECT_EQ(parsed({"--version"}).command, Command::version);
}

// Every row has a name that is a legal flag and environment name, a help text and a default, and stands once.
TEST_F(Options, RowsAreWhole) {
    const std::string markdown = options::help(Command::none, options::HelpFormat::markdown);
    std::map<std::string, int> seen;
    size_t rows = 0;
    for (size_t at = 0; (at = markdown.find("| `", at)) != std::string::npos; ++rows) {
        const size_t end = markdown.find('\n', at);
        const std::string row = markdown.substr(at, end - at);
        const size_t variable = row.find("`HEARTH_");
        ASSERT_NE(variable, std::string::npos) << row;
        const std::string name = row.substr(variable + 1, row.find('`', variable + 1) - variable - 1);
        EXPECT_EQ(++seen[name], 1) << name;
        for (char c : name) EXPECT_TRUE((c >= 'A' && c <= 'Z') || c == '_') << name;
        EXPECT_EQ(row.find("|  |"), std::string::npos) << "an empty cell: " << row;
        at = end;
    }
    EXPECT_GT(rows, 25u);
}

TEST_F(Options, ManPageNamesEveryFlag) {
    const std::string man = options::help(Command::none, options::HelpFormat::man);
    const std::string markdown = options::help(Command::none, options::HelpFormat::markdown);
    for (size_t at = 0; (at = markdown.find("`--", at)) != std::string::npos;) {
        const size_t end = markdown.find_first_of(" `", at + 1);
        std::string flag = markdown.substr(at + 1, end - at - 1), escaped;
        for (char c : flag) escaped += c == '-' ? "\\-" : std::string(1, c);
        EXPECT_NE(man.find(escaped), std::string::npos) << flag;
        at = end;
    }
}

}  // namespace
