t explain E0317
t explain dim_unbound
t explain I0804
t explain E0318x
t explain nonsense
