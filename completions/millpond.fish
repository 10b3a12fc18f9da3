# fish: millpond completion fish > ~/.config/fish/completions/millpond.fish
complete -c millpond -f -n __fish_use_subcommand -a 'train plan evaluate predict completion '
complete -c millpond -n '__fish_seen_subcommand_from train' -a 'tiny mlp_small mlp_large mlp_784 cnn_224 resnet50 gpt2 '
complete -c millpond -n '__fish_seen_subcommand_from train' -l help
complete -c millpond -n '__fish_seen_subcommand_from train' -l data
complete -c millpond -n '__fish_seen_subcommand_from train' -l synthetic
complete -c millpond -n '__fish_seen_subcommand_from train' -l epochs
complete -c millpond -n '__fish_seen_subcommand_from train' -l steps-per-epoch
complete -c millpond -n '__fish_seen_subcommand_from train' -l batch
complete -c millpond -n '__fish_seen_subcommand_from train' -l optimizer
complete -c millpond -n '__fish_seen_subcommand_from train' -l loss
complete -c millpond -n '__fish_seen_subcommand_from train' -l threads
complete -c millpond -n '__fish_seen_subcommand_from train' -l seed
complete -c millpond -n '__fish_seen_subcommand_from train' -l save
complete -c millpond -n '__fish_seen_subcommand_from train' -l run
complete -c millpond -n '__fish_seen_subcommand_from train' -l count-allocations
complete -c millpond -n '__fish_seen_subcommand_from train' -l json
complete -c millpond -n '__fish_seen_subcommand_from plan' -a 'tiny mlp_small mlp_large mlp_784 cnn_224 resnet50 gpt2 '
complete -c millpond -n '__fish_seen_subcommand_from plan' -l help
complete -c millpond -n '__fish_seen_subcommand_from plan' -l batch
complete -c millpond -n '__fish_seen_subcommand_from plan' -l optimizer
complete -c millpond -n '__fish_seen_subcommand_from plan' -l loss
complete -c millpond -n '__fish_seen_subcommand_from plan' -l threads
complete -c millpond -n '__fish_seen_subcommand_from plan' -l by-layer
complete -c millpond -n '__fish_seen_subcommand_from plan' -l print-passes
complete -c millpond -n '__fish_seen_subcommand_from plan' -l no-passes
complete -c millpond -n '__fish_seen_subcommand_from plan' -l json
complete -c millpond -n '__fish_seen_subcommand_from evaluate' -a 'tiny mlp_small mlp_large mlp_784 cnn_224 resnet50 gpt2 '
complete -c millpond -n '__fish_seen_subcommand_from evaluate' -l help
complete -c millpond -n '__fish_seen_subcommand_from evaluate' -l weights
complete -c millpond -n '__fish_seen_subcommand_from evaluate' -l data
complete -c millpond -n '__fish_seen_subcommand_from evaluate' -l batch
complete -c millpond -n '__fish_seen_subcommand_from evaluate' -l loss
complete -c millpond -n '__fish_seen_subcommand_from evaluate' -l threads
complete -c millpond -n '__fish_seen_subcommand_from evaluate' -l json
complete -c millpond -n '__fish_seen_subcommand_from predict' -a 'tiny mlp_small mlp_large mlp_784 cnn_224 resnet50 gpt2 '
complete -c millpond -n '__fish_seen_subcommand_from predict' -l help
complete -c millpond -n '__fish_seen_subcommand_from predict' -l weights
complete -c millpond -n '__fish_seen_subcommand_from predict' -l data
complete -c millpond -n '__fish_seen_subcommand_from predict' -l out
complete -c millpond -n '__fish_seen_subcommand_from predict' -l batch
complete -c millpond -n '__fish_seen_subcommand_from predict' -l threads
complete -c millpond -n '__fish_seen_subcommand_from predict' -l json
complete -c millpond -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
